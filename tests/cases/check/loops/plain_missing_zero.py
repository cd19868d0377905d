# expect: mistake missing_zero_grad
import torch

def fit(model, loader, criterion, optimizer, epochs, accumulation_steps):
    for epoch in range(epochs):
        model.train()
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            (loss / accumulation_steps).backward()
            if (i + 1) % accumulation_steps == 0:
                optimizer.step()
