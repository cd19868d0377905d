# expect: ok
import torch
from tqdm import tqdm


class ConnectorTrainer:
    def __init__(self, model, optimizer, train_loader, device, grad_accum_steps=1, max_grad_norm=1.0, amp=True, logger=None, log_every=50):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.device = device
        self.grad_accum_steps = max(1, grad_accum_steps)
        self.max_grad_norm = max_grad_norm
        self.scaler = torch.cuda.amp.GradScaler(enabled=amp)
        self.logger = logger
        self.log_every = log_every

    def _set_train_mode(self):
        self.model.connector.train()
        self.model.vision_encoder.eval()

    def train_one_epoch(self, epoch):
        if hasattr(self.train_loader.dataset, "set_epoch"):
            self.train_loader.dataset.set_epoch(epoch - 1)
        self._set_train_mode()
        self.optimizer.zero_grad(set_to_none=True)
        total_loss = 0.0
        num_steps = 0
        progress = tqdm(self.train_loader, desc=f"train epoch {epoch}", leave=False)
        for step, batch in enumerate(progress):
            batch = {k: v.to(self.device) for k, v in batch.items()}
            with torch.autocast("cuda"):
                outputs = self.model(batch)
                raw_loss = outputs["loss"]
                loss = raw_loss / self.grad_accum_steps
            self.scaler.scale(loss).backward()
            should_step = (step + 1) % self.grad_accum_steps == 0 or step + 1 == len(self.train_loader)
            if should_step:
                if self.max_grad_norm > 0:
                    self.scaler.unscale_(self.optimizer)
                    torch.nn.utils.clip_grad_norm_(self.model.connector.parameters(), self.max_grad_norm)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad(set_to_none=True)
            loss_value = float(raw_loss.detach().cpu())
            total_loss += loss_value
            num_steps += 1
            progress.set_postfix(loss=f"{loss_value:.4f}")
            if self.log_every and (step + 1) % self.log_every == 0:
                self.logger.info("epoch=%s step=%s loss=%.4f", epoch, step + 1, loss_value)
        return total_loss / max(num_steps, 1)
