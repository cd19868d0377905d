# expect: mistake clip_per_micro_step no_division unscale_twice
import torch
from torch.cuda.amp import autocast
from tqdm import tqdm


def train(config, model, dataloader, loss_function, optimizer, scheduler=None, scaler=None):
    model.train()
    losses = AverageMeter()
    optimizer.zero_grad(set_to_none=True)
    step = 1
    for ids1, mask1, ids2, mask2, labels in tqdm(dataloader, total=len(dataloader)):
        if scaler:
            with autocast():
                ids1, mask1 = ids1.to(config.device), mask1.to(config.device)
                ids2, mask2 = ids2.to(config.device), mask2.to(config.device)
                features1, features2 = model(ids1, mask1), model(ids2, mask2)
                loss = loss_function(features1, features2, model.logit_scale)
                losses.update(loss.item())
            scaler.scale(loss).backward()
            if config.clip_grad:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_value_(model.parameters(), config.clip_grad)
            if step % config.gradient_accumulation == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                if config.scheduler in ("polynomial", "cosine"):
                    scheduler.step()
        else:
            loss = loss_function(model(ids1, mask1), model(ids2, mask2), model.logit_scale)
            losses.update(loss.item())
            loss.backward()
            if config.clip_grad:
                torch.nn.utils.clip_grad_value_(model.parameters(), config.clip_grad)
            if step % config.gradient_accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
                if config.scheduler in ("polynomial", "cosine"):
                    scheduler.step()
        step += 1
    return losses.avg
