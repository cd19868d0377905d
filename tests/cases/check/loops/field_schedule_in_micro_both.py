# expect: ok
import torch
from transformers import get_cosine_schedule_with_warmup


def run(args, model, loader, optimizer):
    total = len(loader) * args.epochs
    scheduler = get_cosine_schedule_with_warmup(optimizer, int(0.05 * total), total)
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        for i, batch in enumerate(loader):
            loss = model(**{k: v.cuda() for k, v in batch.items()}).loss
            (loss / args.accum).backward()
            scheduler.step()
            if (i + 1) % args.accum == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            if i % 50 == 0:
                print(f"{epoch} {i} {loss.item():.4f}")
