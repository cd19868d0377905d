# expect: mistake no_sync_inverted
from contextlib import ExitStack

import torch


def train(model, opt, loader, accumulation_steps, world_size, max_norm=1.0):
    model.train()
    opt.zero_grad()
    for i, batch in enumerate(loader):
        last = (i + 1) % accumulation_steps == 0
        with ExitStack() as stack:
            if last:
                stack.enter_context(model.no_sync())
            loss = model(batch["input_ids"], labels=batch["labels"]).loss / accumulation_steps
            loss.backward()
        if last:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            opt.step()
            opt.zero_grad()
    opt.zero_grad()
