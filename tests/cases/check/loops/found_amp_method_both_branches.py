# expect: ok
import torch
from tqdm import tqdm


class ClassifierTrainer:
    def __init__(self, model, optimizer, criterion, device, use_amp=True, accumulation_steps=4, max_grad_norm=1.0):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion
        self.device = device
        self.use_amp = use_amp
        self.accumulation_steps = accumulation_steps
        self.max_grad_norm = max_grad_norm
        self.scaler = torch.cuda.amp.GradScaler() if use_amp else None

    def _optimizer_step(self, loss: torch.Tensor, step_idx: int):
        loss = loss / self.accumulation_steps
        if self.use_amp:
            self.scaler.scale(loss).backward()
            if (step_idx + 1) % self.accumulation_steps == 0:
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()
        else:
            loss.backward()
            if (step_idx + 1) % self.accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
                self.optimizer.step()
                self.optimizer.zero_grad()

    def train_epoch(self, loader):
        self.model.train()
        total_loss, correct, total = 0.0, 0, 0
        self.optimizer.zero_grad()
        for step_idx, (texts, labels) in enumerate(tqdm(loader, desc="train")):
            labels = labels.to(self.device)
            with torch.cuda.amp.autocast(enabled=self.use_amp):
                logits = self.model(texts.to(self.device))
                loss = self.criterion(logits, labels)
            self._optimizer_step(loss, step_idx)
            total_loss += loss.item()
            correct += (logits.argmax(1) == labels).sum().item()
            total += labels.size(0)
        return total_loss / len(loader), correct / total
