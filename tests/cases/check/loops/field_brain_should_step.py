# expect: ok
from contextlib import contextmanager
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Brain:
    def __init__(self, modules, opt_class, hparams, run_opts):
        self.modules = torch.nn.ModuleDict(modules)
        self.opt_class = opt_class
        self.hparams = hparams
        self.optimizer = None
        self.step = 0
        self.optimizer_step = 0
        self.nonfinite_count = 0
        self.grad_accumulation_factor = run_opts.get("grad_accumulation_factor", 1)
        self.max_grad_norm = run_opts.get("max_grad_norm", 5.0)
        self.scaler = torch.cuda.amp.GradScaler(enabled=run_opts.get("fp16", False))
        self.avg_train_loss = 0.0

    def init_optimizers(self):
        self.optimizer = self.opt_class(self.modules.parameters())
        self.optimizers_dict = {"opt": self.optimizer}

    def compute_forward(self, batch, stage):
        raise NotImplementedError

    def compute_objectives(self, predictions, batch, stage):
        raise NotImplementedError

    def fit_batch(self, batch):
        should_step = (self.step % self.grad_accumulation_factor) == 0
        with self.no_sync(not should_step):
            outputs = self.compute_forward(batch, "train")
            loss = self.compute_objectives(outputs, batch, "train")
            scaled_loss = self.scaler.scale(loss / self.grad_accumulation_factor)
            self.check_loss_isfinite(scaled_loss)
            scaled_loss.backward()
        if should_step:
            self.optimizers_step()
        self.on_fit_batch_end(batch, outputs, loss, should_step)
        return loss.detach().cpu()

    def check_loss_isfinite(self, loss):
        if not torch.isfinite(loss):
            self.nonfinite_count += 1
            if self.nonfinite_count > 3:
                raise ValueError("loss is not finite")

    def on_fit_batch_end(self, batch, outputs, loss, should_step):
        pass

    def optimizers_step(self):
        valid = self.freeze_optimizers(self.optimizers_dict)
        for opt in valid.values():
            self.scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(self.modules.parameters(), self.max_grad_norm)
            self.scaler.step(opt)
        self.scaler.update()
        for opt in valid.values():
            opt.zero_grad(set_to_none=True)
        self.optimizer_step += 1

    def freeze_optimizers(self, optimizers):
        return optimizers

    def zero_grad(self):
        for opt in self.optimizers_dict.values():
            opt.zero_grad(set_to_none=True)

    def _fit_train(self, train_set, epoch):
        self.modules.train()
        self.zero_grad()
        for batch in train_set:
            self.step += 1
            loss = self.fit_batch(batch)
            self.avg_train_loss = self.update_average(loss, self.avg_train_loss)
        self.avg_train_loss = 0.0
        self.step = 0

    def fit(self, epoch_counter, train_set):
        self.init_optimizers()
        for epoch in epoch_counter:
            self._fit_train(train_set, epoch)

    def update_average(self, loss, avg_loss):
        if torch.isfinite(loss):
            avg_loss -= avg_loss / self.step
            avg_loss += float(loss) / self.step
        return avg_loss

    @contextmanager
    def no_sync(self, use=True):
        if not use:
            yield
            return
        old = []
        for module in self.modules.values():
            if not hasattr(module, "require_backward_grad_sync"):
                continue
            old.append(module.require_backward_grad_sync)
            module.require_backward_grad_sync = False
        yield
        i = 0
        for module in self.modules.values():
            if not hasattr(module, "require_backward_grad_sync"):
                continue
            module.require_backward_grad_sync = old[i]
            i += 1
