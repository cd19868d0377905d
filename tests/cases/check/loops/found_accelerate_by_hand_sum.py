# expect: mistake no_division
from accelerate import Accelerator
import torch


def train(model, dataloader, criterion, optimizer, device, accelerator, accumulation_steps):
    model.train()
    running_loss = 0.0
    total_relative_error = 0.0
    optimizer.zero_grad()
    for batch_idx, (images, labels) in enumerate(dataloader):
        images, labels = images.to(device), labels.to(device)
        outputs = model(images)
        loss = criterion(outputs.squeeze(), labels)
        accelerator.backward(loss)
        if (batch_idx + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
        relative_error = torch.mean(torch.abs((outputs.squeeze() - labels) / labels))
        running_loss += loss.item()
        total_relative_error += relative_error.item()
    if (batch_idx + 1) % accumulation_steps != 0:
        optimizer.step()
        optimizer.zero_grad()
    running_loss = accelerator.reduce(running_loss, reduction="mean")
    return running_loss / len(dataloader), total_relative_error / len(dataloader)


def main():
    accelerator = Accelerator()
    device = accelerator.device
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    criterion = torch.nn.MSELoss()
    model, optimizer, loader = accelerator.prepare(model, optimizer, make_loader("train"))
    for epoch in range(30):
        print(train(model, loader, criterion, optimizer, device, accelerator, accumulation_steps=8))
