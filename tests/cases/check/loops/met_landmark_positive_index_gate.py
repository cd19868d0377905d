# expect: mistake off_by_one_boundary no_division
import logging
import time
from collections import defaultdict

from torch.cuda.amp import autocast


def train_one_epoch(opt, model, optimizer, scheduler, data_loader, epoch, ema=None, scaler=None):
    start_time = time.time()
    total_loss = defaultdict(float)
    model.train()
    optimizer.zero_grad()
    for batch_idx, inputs in enumerate(data_loader):
        for k in inputs:
            if k != "meta":
                inputs[k] = inputs[k].to(device=opt.device, non_blocking=True)
        if opt.amp:
            with autocast():
                output, loss, loss_stats = model(inputs)
            scaler.scale(loss).backward()
            if (batch_idx % opt.accumulate == 0) and (batch_idx > 0):
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
                optimizer.zero_grad()
                if ema is not None:
                    ema.update(model)
        else:
            output, loss, loss_stats = model(inputs)
            loss.backward()
            if (batch_idx % opt.accumulate == 0) and (batch_idx > 0):
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                if ema is not None:
                    ema.update(model)
        for k, v in loss_stats.items():
            total_loss[k] += v.item()
        if (batch_idx % opt.log_interval == 0) and (batch_idx > 0):
            logging.info("epoch %d batch %d took %.1f", epoch, batch_idx, time.time() - start_time)
