# expect: note tail_dropped
import contextlib

def train(model, loader, optimizer, accumulate):
    for i, batch in enumerate(loader):
        boundary = (i + 1) % accumulate == 0
        context = contextlib.nullcontext() if boundary else model.no_sync()
        with context:
            loss = model(batch).mean() / accumulate
            loss.backward()
        if boundary:
            optimizer.step()
            optimizer.zero_grad()
