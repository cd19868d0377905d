# expect: ok
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class ReconstructionTrainer:
    def __init__(self, config, model, optimizer, lr_scheduler, data):
        self.config = config
        self.model = DDP(model)
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.data = data
        self.grad_accum_steps = config.training.grad_accum_steps
        self.total_train_steps = config.training.train_steps * self.grad_accum_steps
        self.cur_train_step = 0
        self.scaler = torch.cuda.amp.GradScaler(enabled=config.training.use_amp)

    def train(self):
        self.optimizer.zero_grad(set_to_none=True)
        while self.cur_train_step <= self.total_train_steps:
            batch = self.data.fetch(self.cur_train_step)
            with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
                ret = self.model(batch)
            update_grads = (self.cur_train_step + 1) % self.grad_accum_steps == 0 or self.cur_train_step == self.total_train_steps
            if not update_grads:
                with self.model.no_sync():
                    self.scaler.scale(ret.loss_metrics.loss / self.grad_accum_steps).backward()
            else:
                self.scaler.scale(ret.loss_metrics.loss / self.grad_accum_steps).backward()
            self.cur_train_step += 1
            if update_grads:
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.grad_clip_norm)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.lr_scheduler.step()
                self.optimizer.zero_grad(set_to_none=True)
