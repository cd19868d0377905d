# expect: mistake geometric_weighting
import torch


def accumulate_and_step(model, optimizer, batches, loss_fn):
    optimizer.zero_grad()
    n = len(batches)
    for x, y in batches:
        loss_fn(model(x), y).backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= n
    optimizer.step()


def train(model, optimizer, loader, loss_fn, n_acc):
    buffer = []
    for xy in loader:
        buffer.append(xy)
        if len(buffer) == n_acc:
            accumulate_and_step(model, optimizer, buffer, loss_fn)
            buffer = []
