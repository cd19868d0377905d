# expect: mistake log_factor tail_leak
import torch


def train_epoch(model, graph, loader, optimizer, criterion, accumulation_steps, device):
    model.train()
    total_loss = 0.0
    for batch_idx, (edges, y) in enumerate(loader):
        nodes = torch.unique(edges)
        x = graph.x[nodes].to(device)
        out = model(x, edges.to(device))
        loss = criterion(out, y.to(device)) / accumulation_steps
        loss.backward()
        if (batch_idx + 1) % accumulation_steps == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            total_loss += loss.item() * accumulation_steps
    return total_loss / len(loader)


def main(model, graph, loader, optimizer, criterion, device):
    for epoch in range(50):
        loss = train_epoch(model, graph, loader, optimizer, criterion, 4, device)
        print(f"Epoch {epoch}: loss {loss:.4f}")
