# expect: mistake count_not_matching_trained_tokens
import torch
import torch.nn.functional as F


def train(model, stream, optimizer, steps, n_micro):
    for step in range(steps):
        window = [next(stream) for _ in range(n_micro)]
        num_label_tokens = sum((b["labels"] != -100).sum().item() for b in window)
        optimizer.zero_grad()
        for b in window:
            logits = model(b["input_ids"].cuda()).logits
            shift_logits = logits[..., :-1, :].contiguous()
            shift_labels = b["labels"][..., 1:].contiguous().cuda()
            loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1),
                                   ignore_index=-100, reduction="sum")
            (loss / num_label_tokens).backward()
        optimizer.step()
