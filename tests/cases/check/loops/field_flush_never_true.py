# expect: mistake tail_leak
import torch


def train_epoch(model, loader, optimizer, loss_fn, accumulation_steps, device):
    model.train()
    total = 0.0
    for step, (images, targets) in enumerate(loader):
        images, targets = images.to(device), targets.to(device)
        loss = loss_fn(model(images), targets)
        total += loss.item()
        (loss / accumulation_steps).backward()
        if (step + 1) % accumulation_steps == 0 or step == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    return total / len(loader)


def run(model, loader, optimizer, loss_fn, cfg):
    optimizer.zero_grad()
    for epoch in range(cfg.epochs):
        loss = train_epoch(model, loader, optimizer, loss_fn, cfg.accumulation_steps, cfg.device)
        print(epoch, loss)
