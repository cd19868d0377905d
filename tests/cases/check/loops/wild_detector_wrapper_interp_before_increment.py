# expect: mistake varying_accum_modulo no_division off_by_one_boundary
import numpy as np
import torch


class DetectorOptimizer:
    def __init__(self, model, cfg, optimizer, scheduler, ema, nbs=64):
        self.model, self.cfg = model, cfg
        self._optimizer, self._scheduler, self._ema = optimizer, scheduler, ema
        self.nbs = nbs
        self.max_steps_burn_in = cfg["burn_in"]
        self._global_step = 0

    def optimizer_step(self, loss):
        xi = [0, self.max_steps_burn_in]
        accumulate = max(1, np.interp(self._global_step, xi, [1, self.nbs / self.cfg["batch_size"]]).round())
        loss.backward()
        if self._global_step % accumulate == 0:
            self._optimizer.step()
            self._optimizer.zero_grad()
            self._ema.update(self.model)
        self._global_step += 1

    def scheduler_step(self):
        self._scheduler.step()


def train(model, loader, loss_fn, wrapper, epochs):
    for epoch in range(epochs):
        for images, targets in loader:
            loss = loss_fn(model(images), targets)
            wrapper.optimizer_step(loss)
        wrapper.scheduler_step()
