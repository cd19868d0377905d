# expect: mistake apply_inside_loop
import torch

def fit(model, loader, criterion, optimizer, epochs, accumulation_steps):
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            (loss / accumulation_steps).backward()
            optimizer.step()
            if (i + 1) % accumulation_steps == 0:
                optimizer.zero_grad()
