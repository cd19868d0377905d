# expect: ok
import numpy as np
import torch


def train(model, optimizer, scheduler, ema, train_loader, scaler, batch_size, epochs, nw, nbs=64):
    nb = len(train_loader)
    last_opt_step = -1
    accumulate = max(round(nbs / batch_size), 1)
    for epoch in range(epochs):
        optimizer.zero_grad()
        for i, (imgs, targets) in enumerate(train_loader):
            ni = i + nb * epoch
            if ni <= nw:
                accumulate = max(1, np.interp(ni, [0, nw], [1, nbs / batch_size]).round())
            with torch.cuda.amp.autocast():
                loss, items = compute_loss(model(imgs), targets)
            scaler.scale(loss / accumulate).backward()
            if ni - last_opt_step >= accumulate:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                ema.update(model)
                last_opt_step = ni
        scheduler.step()
