# expect: mistake not_equivalent_by_nature
import torch
from pytorch_metric_learning.losses import NTXentLoss


def train_simclr(model, loader, epochs, accumulation_steps, device):
    criterion = NTXentLoss(temperature=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    epoch_losses = []
    for epoch in range(epochs):
        total_loss, num_batches = 0.0, 0
        optimizer.zero_grad()
        for batch_idx, (x1, x2) in enumerate(loader):
            z = torch.cat([model(x1.to(device)), model(x2.to(device))], dim=0)
            labels = torch.arange(x1.size(0), device=device)
            labels = torch.cat([labels, labels], dim=0)
            loss = criterion(z, labels)
            loss = loss / accumulation_steps
            loss.backward()
            if (batch_idx + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            total_loss += loss.item() * accumulation_steps
            num_batches += 1
        if num_batches % accumulation_steps != 0:
            optimizer.step()
            optimizer.zero_grad()
        epoch_losses.append(total_loss / num_batches)
        print(f'SimCLR Epoch {epoch+1}/{epochs} completed. Average Loss: {epoch_losses[-1]:.4f}')
    return epoch_losses
