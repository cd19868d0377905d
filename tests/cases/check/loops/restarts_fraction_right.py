# expect: ok
import torch
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts


class Fit:
    def __init__(self, net, batches, settings):
        self.net, self.batches = net, batches
        self.accum = settings["accumulation_steps"]
        self.epochs = settings["epochs"]
        self.opt = torch.optim.AdamW(net.parameters())
        self.sched = CosineAnnealingWarmRestarts(self.opt, T_0=2)

    def run(self):
        for epoch in range(self.epochs):
            self.opt.zero_grad()
            for i, (x, y) in enumerate(self.batches):
                loss = self.net(x, y) / self.accum
                loss.backward()
                if (i + 1) % self.accum == 0:
                    self.opt.step()
                    self.opt.zero_grad()
                    self.sched.step(epoch + i / len(self.batches))
