# expect: ok
import torch
import torch.nn.functional as F


class Loop:
    def __init__(self, net, cfg):
        self.net, self.cfg = net, cfg
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.tokens = 0

    def run(self, packs):
        for x, y in packs:
            loss = F.cross_entropy(self.net(x).transpose(1, 2), y, reduction="sum")
            (loss / self.cfg.window_tokens).backward()
            self.tokens += y.numel()
            if self.tokens < self.cfg.window_tokens:
                continue
            self.opt.step()
            self.opt.zero_grad()
            self.tokens = 0
