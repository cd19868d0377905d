# expect: mistake dynamic_micro_batch_divisor
import torch

from stream import top_up


def train(net, source, cfg, steps):
    optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    waiting = []
    done = held_tokens = 0
    while done < steps:
        top_up(waiting, source)
        taken, waiting[:] = waiting[:4], waiting[4:]
        kept = [row for row in taken if len(row) < cfg.longest]
        if not kept:
            continue
        loss, n = net(kept)
        (loss / cfg.grad_accum).backward()
        held_tokens += n
        if held_tokens < cfg.tokens_per_step:
            continue
        optimizer.step()
        optimizer.zero_grad()
        held_tokens = 0
        done += 1
