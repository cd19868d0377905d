# expect: ok
import torch


def train_epoch(net, loader, opt, loss_fn, accum):
    opt.zero_grad()
    n = 0
    for x, y in loader:
        (loss_fn(net(x), y) / accum).backward()
        n += 1
        if n % accum == 0:
            opt.step()
            opt.zero_grad()
    if n % accum:
        opt.step()
        opt.zero_grad()
