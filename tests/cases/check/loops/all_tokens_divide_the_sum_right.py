# expect: ok
import torch
import torch.nn.functional as F


def train(net, windows, opt, accum_steps):
    for window in windows:
        opt.zero_grad()
        denominator = sum((b["labels"][:, 1:] != -100).sum() for b in window)
        for micro in window:
            logits = net(micro["input_ids"])
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), micro["labels"][:, 1:].flatten(),
                                   reduction="sum", ignore_index=-100)
            loss = loss / denominator
            loss.backward()
        opt.step()
