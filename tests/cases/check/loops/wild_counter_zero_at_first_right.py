# expect: ok
import torch


class MoeTrainer:
    def __init__(self, model, optimizer, lr_scheduler, config, device):
        self.model = model
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.config = config
        self.device = device
        self.accumulation_steps = config.training.gradient_accumulation_steps
        self.accumulation_counter = 0
        self.accumulated_loss = 0.0
        self.step = 0

    def train_step(self, batch):
        tokens = self._count_tokens_in_batch(batch)
        batch = {k: v.to(self.device) if torch.is_tensor(v) else v for k, v in batch.items()}
        outputs = self.model(**batch)
        loss = outputs.loss
        loss = loss / self.accumulation_steps
        if self.accumulation_counter == 0:
            self.optimizer.zero_grad()
        loss.backward()
        self.accumulated_loss += outputs.loss.item()
        self.accumulation_counter += 1
        if self.accumulation_counter >= self.accumulation_steps:
            if self.config.training.grad_clip > 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.grad_clip)
            self.optimizer.step()
            self.lr_scheduler.step()
            self.accumulation_counter = 0
            mean_loss = self.accumulated_loss / self.accumulation_steps
            self.accumulated_loss = 0.0
            self.step += 1
            return {"loss": mean_loss, "tokens": tokens, "updated": True}
        return {"loss": None, "tokens": tokens, "updated": False}

    def train(self, loader):
        self.model.train()
        while self.step < self.config.training.max_steps:
            for batch in loader:
                metrics = self.train_step(batch)
                if metrics["updated"] and self.step % self.config.training.log_interval == 0:
                    print(self.step, metrics["loss"])
                if self.step >= self.config.training.max_steps:
                    break
