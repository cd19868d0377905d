# expect: ok
import torch


def train(model, optimizer, loader, args):
    micro, step = 0, 0
    running = []
    optimizer.zero_grad(set_to_none=True)
    while step < args.max_steps:
        for batch in loader:
            loss = model(**batch).loss
            if not torch.isfinite(loss):
                print("skipping non-finite loss")
                optimizer.zero_grad(set_to_none=True)
                micro = 0
                continue
            running.append(loss.item())
            (loss / args.grad_accum).backward()
            micro += 1
            if micro < args.grad_accum:
                continue
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            micro = 0
            step += 1
            if step % args.log_every == 0:
                print(step, sum(running) / len(running))
                running.clear()
            if step >= args.max_steps:
                break
