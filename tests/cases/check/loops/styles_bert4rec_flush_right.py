# expect: ok
import torch


def train(model, loader, optimizer, scheduler, n_accum, epochs):
    for epoch in range(epochs):
        pending = 0
        optimizer.zero_grad()
        for seqs, labels in loader:
            logits = model(seqs)
            loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
            loss.backward()
            pending += 1
            if pending == n_accum:
                apply(model, optimizer, scheduler, pending)
                pending = 0
        if pending:
            apply(model, optimizer, scheduler, pending)


def apply(model, optimizer, scheduler, count):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.div_(count)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
