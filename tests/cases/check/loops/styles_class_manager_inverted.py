# expect: mistake no_sync_inverted
import contextlib

import torch


@contextlib.contextmanager
def hold_back(model, boundary):
    before = model.require_backward_grad_sync
    model.require_backward_grad_sync = not boundary
    try:
        yield
    finally:
        model.require_backward_grad_sync = before


def train(model, loader, optimizer, accum):
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        boundary = (i + 1) % accum == 0 or i + 1 == len(loader)
        with hold_back(model, boundary):
            (model(**batch).loss / accum).backward()
        if boundary:
            optimizer.step()
            optimizer.zero_grad()
