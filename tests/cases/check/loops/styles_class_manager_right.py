# expect: ok
import torch


class GradSync:
    """with GradSync(model, on): gradients are exchanged in backward only when `on`."""

    def __init__(self, model, on):
        self.model, self.on = model, on

    def __enter__(self):
        self.before = self.model.require_backward_grad_sync
        self.model.require_backward_grad_sync = self.on
        return self

    def __exit__(self, *exc):
        self.model.require_backward_grad_sync = self.before


def train(model, loader, optimizer, accum):
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        boundary = (i + 1) % accum == 0 or i + 1 == len(loader)
        with GradSync(model, boundary):
            (model(**batch).loss / accum).backward()
        if boundary:
            optimizer.step()
            optimizer.zero_grad()
