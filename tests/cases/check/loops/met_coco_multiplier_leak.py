# expect: mistake tail_leak
import math
import sys

import torch

import utils


def train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq=100, batch_multiplier=4, scaler=None, lr_scheduler=None):
    model.train()
    metric_logger = utils.MetricLogger(delimiter="  ")
    for i, (images, targets) in enumerate(metric_logger.log_every(data_loader, print_freq, f"Epoch: [{epoch}]")):
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        with torch.cuda.amp.autocast(enabled=scaler is not None):
            loss_dict = model(images, targets)
            losses = sum(loss for loss in loss_dict.values())
        losses /= batch_multiplier
        loss_dict_reduced = utils.reduce_dict(loss_dict)
        losses_reduced = sum(loss for loss in loss_dict_reduced.values())
        if not math.isfinite(losses_reduced.item()):
            print(loss_dict_reduced)
            sys.exit(1)
        if scaler is not None:
            scaler.scale(losses).backward()
        else:
            losses.backward()
        if (i + 1) % batch_multiplier == 0:
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()
            if lr_scheduler is not None:
                lr_scheduler.step()
        metric_logger.update(loss=losses_reduced, **loss_dict_reduced)
    return metric_logger
