# expect: mistake clip_per_micro_step
import torch


def train(model, loader, optimizer, n_accum):
    optimizer.zero_grad()
    for i, batch in enumerate(loader, 1):
        loss = model(**batch)["loss"] / n_accum
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if i % n_accum == 0 or i == len(loader):
            optimizer.step()
            optimizer.zero_grad()
