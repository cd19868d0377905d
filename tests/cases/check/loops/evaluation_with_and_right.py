# expect: ok
import torch
from accelerate import Accelerator


def fit(model, optimizer, train_loader, valid_loader, loss_of, epochs):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, train_loader, valid_loader = accelerator.prepare(model, optimizer, train_loader, valid_loader)
    for epoch in range(epochs):
        model.train()
        for batch in train_loader:
            with accelerator.accumulate(model):
                accelerator.backward(loss_of(model, batch))
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        total = 0.0
        for batch in valid_loader:
            with accelerator.accumulate(model) and torch.no_grad():
                total += loss_of(model, batch).item()
        print(epoch, total / len(valid_loader))
