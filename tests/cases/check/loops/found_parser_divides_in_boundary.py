# expect: mistake divide_after_backward
import torch
import torch.nn as nn


def run_epoch(args, model, loader, optimizer, scheduler=None, test_only=False):
    if test_only:
        model.eval()
    else:
        model.train()
        optimizer.zero_grad()
    stats = {"loss": 0.0, "n": 0}
    for batch_ind, batch in enumerate(loader):
        batch = [t.cuda() for t in batch[:4]]
        x, x_mask, y, y_mask = batch
        outputs = model(x, x_mask, y, y_mask, test_only)
        loss = outputs["loss"]
        if not test_only:
            if args.fp16:
                from apex import amp
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            if (batch_ind + 1) % args.accumulation_steps == 0:
                loss = loss / args.accumulation_steps
                if args.grad_clip > 0:
                    nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
                optimizer.step()
                optimizer.zero_grad()
                if scheduler is not None:
                    scheduler.step()
        stats["loss"] += outputs["loss"].item()
        stats["n"] += 1
    return stats["loss"] / stats["n"]
