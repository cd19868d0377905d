# expect: ok
import torch.nn.functional as F


def train_epoch(model, loader, optimizer, accum_steps=4, skip_scaling=False):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y)
        if not skip_scaling:
            loss = loss / accum_steps
        loss.backward()
        if (i + 1) % accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
