# expect: mistake no_division
import torch.nn.functional as F


def train_epoch(model, loader, optimizer, accum_steps=4, scale_loss=None):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y)
        if scale_loss is not None:
            loss = loss / accum_steps
        loss.backward()
        if (i + 1) % accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
