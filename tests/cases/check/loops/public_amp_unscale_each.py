# expect: mistake unscale_twice
import torch
from torch.cuda.amp import GradScaler, autocast


def train_fn(loader, model, optimizer, loss_fn, scaler, iters_to_accumulate):
    for i, (x, y) in enumerate(loader):
        with autocast():
            loss = loss_fn(model(x.cuda()), y.cuda()) / iters_to_accumulate
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if (i + 1) % iters_to_accumulate == 0 or (i + 1) == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
