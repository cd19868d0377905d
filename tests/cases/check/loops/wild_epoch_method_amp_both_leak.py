# expect: mistake tail_leak
import torch
from torch.cuda.amp import GradScaler, autocast
from tqdm import tqdm


class ClassifierTrainer:
    def __init__(self, model, criterion, optimizer, config, device):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer
        self.config = config
        self.device = device
        self.use_amp = config.training.use_amp
        self.grad_accum_steps = config.training.grad_accum_steps
        self.scaler = GradScaler()
        self.current_epoch = 0

    def train_epoch(self, train_loader):
        self.model.train()
        total_loss, correct, total = 0, 0, 0
        bar = tqdm(train_loader, desc=f"Epoch {self.current_epoch + 1}")
        for batch_idx, (inputs, targets) in enumerate(bar):
            inputs, targets = inputs.to(self.device), targets.to(self.device)
            if self.use_amp:
                with autocast():
                    outputs = self.model(inputs)
                    loss = self.criterion(outputs, targets)
                    loss = loss / self.grad_accum_steps
                self.scaler.scale(loss).backward()
                if (batch_idx + 1) % self.grad_accum_steps == 0:
                    if self.config.training.gradient_clip_val > 0:
                        self.scaler.unscale_(self.optimizer)
                        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.gradient_clip_val)
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                    self.optimizer.zero_grad()
            else:
                outputs = self.model(inputs)
                loss = self.criterion(outputs, targets)
                loss = loss / self.grad_accum_steps
                loss.backward()
                if (batch_idx + 1) % self.grad_accum_steps == 0:
                    if self.config.training.gradient_clip_val > 0:
                        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.gradient_clip_val)
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            total_loss += loss.item() * self.grad_accum_steps
            correct += outputs.argmax(1).eq(targets).sum().item()
            total += targets.size(0)
            bar.set_postfix(loss=total_loss / (batch_idx + 1), acc=correct / total)
        return total_loss / len(train_loader), correct / total

    def fit(self, train_loader):
        for epoch in range(self.config.training.epochs):
            self.current_epoch = epoch
            print(self.train_epoch(train_loader))
