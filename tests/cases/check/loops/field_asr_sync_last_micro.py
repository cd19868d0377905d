# expect: ok
from contextlib import nullcontext
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, optim, scheduler, accum_grad=4, use_ddp=True, grad_clip=5.0):
        self.model = DDP(model) if use_ddp else model
        self.optim = optim
        self.scheduler = scheduler
        self.accum_grad = accum_grad
        self.use_ddp = use_ddp
        self.grad_clip = grad_clip

    def train_epoch(self, dataloader, epoch):
        accum_grad = self.accum_grad
        self.model.train()
        self.optim.zero_grad()
        for batch_idx, batch in enumerate(dataloader):
            my_context = nullcontext
            if self.use_ddp:
                my_context = self.model.no_sync if (batch_idx + 1) % accum_grad != 0 else my_context
            with my_context():
                loss, stats, weight = self.model(**batch)
                loss = loss / accum_grad
                loss.backward()
            if (batch_idx + 1) % accum_grad == 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=self.grad_clip)
                self.optim.step()
                self.scheduler.step()
                self.optim.zero_grad()
