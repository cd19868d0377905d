# expect: mistake no_sync_inverted
import contextlib

import torch
from torch.nn.parallel import DistributedDataParallel


def sync_context(model, is_boundary):
    """Hold back the all-reduce while gradients accumulate."""
    if is_boundary and isinstance(model, DistributedDataParallel):
        return model.no_sync()
    return contextlib.nullcontext()


class Runner:
    def __init__(self, model, optimizer, loader, cfg):
        self.model, self.optimizer, self.loader, self.cfg = model, optimizer, loader, cfg

    def one_epoch(self):
        k = self.cfg.grad_accum
        self.optimizer.zero_grad()
        for it, (x, y) in enumerate(self.loader):
            boundary = (it + 1) % k == 0
            with sync_context(self.model, boundary):
                loss = self.model(x.cuda(), y.cuda()).mean()
                (loss / k).backward()
            if boundary:
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.optimizer.zero_grad()
