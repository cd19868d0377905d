# expect: ok
import torch
import torch.nn.functional as F


def train(model, stream, optimizer, scheduler, steps, n_micro, device):
    for step in range(steps):
        window = [next(stream) for _ in range(n_micro)]
        n_labels = sum(int((b["labels"][:, 1:] != -100).sum()) for b in window)
        optimizer.zero_grad(set_to_none=True)
        shown = 0.0
        for b in window:
            logits = model(b["input_ids"].to(device)).logits[:, :-1]
            labels = b["labels"][:, 1:].to(device)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100, reduction="sum")
            loss = loss / n_labels
            loss.backward()
            shown += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print(f"{step} {shown:.4f}")
