# expect: mistake log_factor
import random

import torch
from tqdm import tqdm


class LesionTraining:
    def __init__(self, use_amp, use_mixup, grad_accum_steps, device):
        self.use_amp = use_amp
        self.use_mixup = use_mixup
        self.grad_accum_steps = grad_accum_steps
        self.device = device
        self.scaler = torch.amp.GradScaler("cuda", enabled=use_amp)

    def _train_one_epoch(self, model, train_loader, criterion, optimizer):
        model.train()
        running_loss = 0.0
        correct = total = 0
        optimizer.zero_grad()
        pbar = tqdm(train_loader, desc="train")
        for batch_idx, (data, target) in enumerate(pbar):
            data, target = data.to(self.device), target.to(self.device)
            soft_target = None
            if self.use_mixup and random.random() < 0.5:
                data, soft_target = self._mixup_batch(data, target)
            with torch.autocast("cuda", dtype=torch.float16, enabled=self.use_amp):
                output = model(data)
                loss = criterion(output, soft_target if soft_target is not None else target) / self.grad_accum_steps
            self.scaler.scale(loss).backward()
            if (batch_idx + 1) % self.grad_accum_steps == 0:
                self.scaler.step(optimizer)
                self.scaler.update()
                optimizer.zero_grad()
            running_loss += loss.item()
            total += target.size(0)
            correct += (output.argmax(1) == target).sum().item()
            current_loss = running_loss / (batch_idx + 1)
            pbar.set_postfix({"Loss": f"{current_loss:.4f}", "Acc": f"{100.0 * correct / total:.2f}%"})
        if len(train_loader) % self.grad_accum_steps != 0:
            self.scaler.step(optimizer)
            self.scaler.update()
            optimizer.zero_grad()
        return running_loss / len(train_loader), correct / total
