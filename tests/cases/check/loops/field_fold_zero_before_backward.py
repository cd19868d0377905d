# expect: mistake zero_grad_in_window log_factor
import gc
import torch
import torch.nn as nn
from tqdm import tqdm


class CFG:
    apex = True
    gradient_accumulation_steps = 4
    batch_scheduler = True
    epochs = 3


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def train_fn(fold, loader, model, optimizer, epoch, scheduler, device):
    model.train()
    scaler = torch.cuda.amp.GradScaler(enabled=CFG.apex)
    losses = Meter()
    global_step = 0
    bar = tqdm(enumerate(loader), total=len(loader))
    for step, (inputs, labels) in bar:
        for k, v in inputs.items():
            inputs[k] = v.to(device)
        labels = labels.to(device)
        batch_size = labels.size(0)
        with torch.cuda.amp.autocast(enabled=CFG.apex):
            y_preds, loss = model(inputs, labels)
        if CFG.gradient_accumulation_steps > 1:
            loss = loss / CFG.gradient_accumulation_steps
        if torch.cuda.device_count() > 1:
            loss = loss.mean()
        optimizer.zero_grad()
        losses.update(loss.item(), batch_size)
        scaler.scale(loss).backward()
        if (step + 1) % CFG.gradient_accumulation_steps == 0:
            scaler.step(optimizer)
            scaler.update()
            global_step += 1
            if CFG.batch_scheduler:
                scheduler.step()
        bar.set_postfix(epoch=epoch + 1, loss=losses.avg, lr=scheduler.get_last_lr()[0])
    return losses.avg
