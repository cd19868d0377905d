# expect: ok
import logging
import torch
from tqdm import tqdm

logger = logging.getLogger(__name__)


class VisionLanguageTrainer:
    def __init__(self, config, model, optimizer, scheduler, train_dataloader, device):
        self.config = config
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.train_dataloader = train_dataloader
        self.device = device
        self.global_step = 0
        self.current_epoch = 0

    def train_step(self, batch):
        batch = {k: v.to(self.device) if torch.is_tensor(v) else v for k, v in batch.items()}
        with torch.autocast("cuda", dtype=torch.bfloat16):
            outputs = self.model(**batch)
            loss = outputs.loss
        metrics = {"loss": loss.item()}
        (loss / self.config.training.gradient_accumulation_steps).backward()
        return metrics

    def optimizer_step(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.max_grad_norm)
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()

    def _train_epoch(self):
        config = self.config.training
        bar = tqdm(self.train_dataloader, desc=f"Epoch {self.current_epoch + 1}")
        sums, count = {}, 0
        self.optimizer.zero_grad()
        for step, batch in enumerate(bar):
            try:
                metrics = self.train_step(batch)
                for key, value in metrics.items():
                    sums[key] = sums.get(key, 0.0) + value
                count += 1
                if (step + 1) % config.gradient_accumulation_steps == 0:
                    self.optimizer_step()
                    self.global_step += 1
                    averages = {k: v / count for k, v in sums.items()}
                    sums, count = {}, 0
                    if self.global_step % config.logging_steps == 0:
                        logger.info("step %d: %s", self.global_step, averages)
            except RuntimeError as error:
                logger.error("step failed: %s", error)
                raise

    def train(self):
        for epoch in range(self.config.training.num_epochs):
            self.current_epoch = epoch
            self._train_epoch()
