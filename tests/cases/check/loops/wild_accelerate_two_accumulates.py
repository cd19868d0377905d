# expect: mistake double_division apply_inside_loop off_by_one_boundary
import itertools

from accelerate import Accelerator


class DiffusionTrainer:
    def __init__(self, config, unet, text_encoder, unet_optimizer, te_optimizer, unet_sched, te_sched, loader):
        self.config = config
        self.accelerator = Accelerator(gradient_accumulation_steps=config.gradient_accumulation_steps)
        self.unet, self.text_encoder, self.unet_optimizer, self.te_optimizer, self.loader = self.accelerator.prepare(
            unet, text_encoder, unet_optimizer, te_optimizer, loader)
        self.unet_lr_scheduler, self.te_lr_scheduler = unet_sched, te_sched
        self._stop = False

    def step(self, step, batch):
        with self.accelerator.accumulate(self.unet), self.accelerator.accumulate(self.text_encoder):
            loss = self.calc_loss_fn(step, batch, self.unet, self.text_encoder)
            self.accelerator.backward(loss)
            if self.accelerator.sync_gradients:
                self.accelerator.clip_grad_norm_(
                    itertools.chain(self.unet.parameters(), self.text_encoder.parameters()), 1.0)
            self.unet_optimizer.step()
            self.te_optimizer.step()
            self.unet_optimizer.zero_grad(set_to_none=True)
            self.te_optimizer.zero_grad(set_to_none=True)
            self.last_loss = loss.item()

    def train(self):
        for epoch in range(self.config.epochs):
            for step, batch in enumerate(self.loader):
                self.step(step, batch)
                if self._stop:
                    break
