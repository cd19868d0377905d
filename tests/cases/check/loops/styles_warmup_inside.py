# expect: mistake sched_per_micro_step
import torch
from transformers import get_cosine_schedule_with_warmup


class Finetune:
    def __init__(self, model, loader, cfg):
        self.model, self.loader, self.cfg = model, loader, cfg
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
        updates = len(loader) // cfg.grad_accum * cfg.epochs
        self.sched = get_cosine_schedule_with_warmup(self.opt, cfg.warmup, updates)

    def train(self):
        for epoch in range(self.cfg.epochs):
            self.opt.zero_grad()
            for i, batch in enumerate(self.loader):
                loss = self.model(**batch).loss / self.cfg.grad_accum
                loss.backward()
                self.sched.step()
                if (i + 1) % self.cfg.grad_accum == 0 or i + 1 == len(self.loader):
                    self.opt.step()
                    self.opt.zero_grad()
