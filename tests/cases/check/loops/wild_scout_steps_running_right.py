# expect: ok
import time

import torch
import torch.nn.functional as F


def train(args, model, loader, cfg, optimizer, scheduler, device, start_step):
    accum_steps = args.accum_steps
    accum_loss = 0.0
    start_time = time.time()
    data_iter = iter(loader)
    optimizer.zero_grad()
    for step in range(start_step, args.max_steps):
        try:
            batch = next(data_iter)
        except StopIteration:
            data_iter = iter(loader)
            batch = next(data_iter)
        x, y = batch["input_ids"].to(device), batch["labels"].to(device)
        logits = model(x)
        if args.speaker_masking:
            loss = masked_cross_entropy(logits, y, build_mask(x).to(device))
        else:
            shift_logits = logits[:, :-1, :].contiguous()
            shift_labels = y[:, 1:].contiguous()
            loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        scaled_loss = loss / accum_steps
        scaled_loss.backward()
        accum_loss += loss.item()
        if (step + 1) % accum_steps == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if step % args.log_interval == 0:
            avg_loss = accum_loss / max(step - start_step + 1, 1)
            print(f"step {step} loss {avg_loss:.4f} lr {scheduler.get_last_lr()[0]:.2e} {time.time() - start_time:.0f}s")
