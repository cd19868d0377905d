# expect: mistake double_division
import torch
import torch.nn.functional as F


def train(net, loader, opt, accum_steps=4):
    for i, (x, y, mask) in enumerate(loader):
        loss = F.cross_entropy(net(x).transpose(1, 2), y)
        tokens = mask.sum()
        loss = loss / tokens
        (loss / accum_steps).backward()
        if (i + 1) % accum_steps == 0:
            opt.step()
            opt.zero_grad()
