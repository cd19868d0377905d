# expect: ok
from contextlib import nullcontext
from functools import partial


class Trainer:
    def __init__(self, accelerator, model, optim, discr_optim, dl_iter, grad_accum_every):
        self.accelerator, self.model, self.optim, self.discr_optim = accelerator, model, optim, discr_optim
        self.dl_iter, self.grad_accum_every = dl_iter, grad_accum_every

    def train_step(self):
        for i in range(self.grad_accum_every):
            is_last = i == (self.grad_accum_every - 1)
            context = partial(self.accelerator.no_sync, self.model) if not is_last else nullcontext
            with self.accelerator.autocast(), context():
                loss = self.model(next(self.dl_iter))
                self.accelerator.backward(loss / self.grad_accum_every)
        self.optim.step()
        self.optim.zero_grad()
        self.discr_optim.zero_grad()
        for i in range(self.grad_accum_every):
            is_last = i == (self.grad_accum_every - 1)
            context = partial(self.accelerator.no_sync, self.model) if not is_last else nullcontext
            with self.accelerator.autocast(), context():
                losses = self.model(next(self.dl_iter), return_discr_loss=True)
                for name, discr_loss in losses:
                    self.accelerator.backward(discr_loss / self.grad_accum_every, retain_graph=True)
        self.discr_optim.step()
