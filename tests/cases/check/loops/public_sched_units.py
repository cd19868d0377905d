# expect: mistake sched_units
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR


class Finetuner:
    def __init__(self, model, loader, cfg):
        self.model, self.loader, self.cfg = model, loader, cfg
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
        self.sched = CosineAnnealingLR(self.opt, T_max=cfg.epochs * len(loader), eta_min=1e-6)

    def epoch(self):
        self.opt.zero_grad()
        for i, batch in enumerate(self.loader):
            loss = self.model(batch).mean() / self.cfg.accum
            loss.backward()
            if (i + 1) % self.cfg.accum == 0 or i + 1 == len(self.loader):
                self.opt.step()
                self.sched.step()
                self.opt.zero_grad()

    def fit(self):
        for _ in range(self.cfg.epochs):
            self.epoch()
