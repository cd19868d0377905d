# expect: ok
import torch
from torch.cuda.amp import autocast
from tqdm import tqdm


class Finetuner:
    def __init__(self, model, optimizer, criterion, device, scaler, scheduler=None, on_batch=False, accumulation_steps=1, clip_grad_norm=None):
        self.model = model.to(device)
        self.optimizer = optimizer
        self.criterion = criterion.to(device)
        self.device = device
        self.scaler = scaler
        self.scheduler = scheduler
        self.on_batch = on_batch
        self.accumulation_steps = max(1, accumulation_steps)
        self.clip_grad_norm = clip_grad_norm

    def train_one_epoch(self, train_loader, current_epoch):
        self.model.train()
        total_loss, done = 0.0, 0
        self.optimizer.zero_grad(set_to_none=True)
        pbar = tqdm(enumerate(train_loader), total=len(train_loader))
        for batch_idx, (images, labels) in pbar:
            images, labels = images.to(self.device), labels.to(self.device)
            this_loss = 0.0
            try:
                with autocast(enabled=self.scaler.is_enabled()):
                    outputs = self.model(images)
                    if isinstance(outputs, tuple):
                        outputs = outputs[0]
                    loss = self.criterion(outputs, labels)
                    this_loss = loss.item()
                    if self.accumulation_steps > 1:
                        loss = loss / self.accumulation_steps
            except Exception as error:
                print(f"forward failed: {error}")
                if self.accumulation_steps > 1 and (batch_idx + 1) % self.accumulation_steps != 0:
                    self.optimizer.zero_grad(set_to_none=True)
                continue
            if not torch.isfinite(loss):
                if self.accumulation_steps > 1 and (batch_idx + 1) % self.accumulation_steps != 0:
                    self.optimizer.zero_grad(set_to_none=True)
                continue
            self.scaler.scale(loss).backward()
            if (batch_idx + 1) % self.accumulation_steps == 0:
                if self.clip_grad_norm is not None:
                    self.scaler.unscale_(self.optimizer)
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=self.clip_grad_norm)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad(set_to_none=True)
                if self.scheduler and self.on_batch:
                    self.scheduler.step()
            total_loss += this_loss
            done += 1
            pbar.set_postfix({"Loss": f"{this_loss:.4f}"})
        return total_loss / done if done > 0 else 0.0
