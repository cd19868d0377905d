# expect: ok
from contextlib import ExitStack

import torch


def train(model, opt, loader, accumulation_steps, world_size, max_norm=1.0):
    model.train()
    opt.zero_grad()
    micro = 0
    for batch in loader:
        micro += 1
        last = micro == accumulation_steps
        with ExitStack() as stack:
            if world_size > 1 and not last:
                stack.enter_context(model.no_sync())
            stack.enter_context(torch.autocast("cuda", dtype=torch.bfloat16))
            loss = model(batch["input_ids"], labels=batch["labels"]).loss
            loss = loss / accumulation_steps
            loss.backward()
        if last:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            opt.step()
            opt.zero_grad()
            micro = 0
    opt.zero_grad()
