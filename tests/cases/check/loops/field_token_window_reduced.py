# expect: ok
import itertools
import torch
import torch.distributed as dist


def batched(iterator, n):
    while chunk := list(itertools.islice(iterator, n)):
        yield chunk


def train(model, loader, optimizer, scheduler, args):
    world_size = dist.get_world_size()
    for epoch in range(args.epochs):
        for window in batched(iter(loader), args.accumulation):
            tokens = torch.tensor(sum((b["labels"][:, 1:] != -100).sum().item() for b in window), device="cuda")
            dist.all_reduce(tokens, op=dist.ReduceOp.SUM)
            total = torch.zeros((), device="cuda")
            for k, b in enumerate(window):
                model.require_backward_grad_sync = k == len(window) - 1
                logits = model(input_ids=b["input_ids"].cuda()).logits[:, :-1]
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1), b["labels"][:, 1:].flatten().cuda(), ignore_index=-100, reduction="sum")
                loss = loss * world_size / tokens
                loss.backward()
                total += loss.detach()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            dist.all_reduce(total, op=dist.ReduceOp.AVG)
            if dist.get_rank() == 0:
                print(total.item())
