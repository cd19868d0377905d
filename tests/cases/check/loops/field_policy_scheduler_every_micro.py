# expect: mistake sched_per_micro_step
import torch
from accelerate import Accelerator
from tqdm import tqdm
from transformers import get_scheduler


class VLATrainer:
    def __init__(self, cfg, model, vla_train_dataloader, optimizer, lr_scheduler, accelerator):
        self.config = cfg
        self.model = model
        self.vla_train_dataloader = vla_train_dataloader
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.accelerator = accelerator
        self.completed_steps = 0

    def prepare_training(self):
        self.model, self.optimizer, self.vla_train_dataloader = self.accelerator.prepare(self.model, self.optimizer, self.vla_train_dataloader)

    def train(self):
        bar = tqdm(range(self.config.trainer.max_train_steps), disable=not self.accelerator.is_local_main_process)
        it = iter(self.vla_train_dataloader)
        while self.completed_steps < self.config.trainer.max_train_steps:
            try:
                batch = next(it)
            except StopIteration:
                it = iter(self.vla_train_dataloader)
                batch = next(it)
            metrics = self._train_step(batch)
            if self.accelerator.sync_gradients:
                bar.update(1)
                self.completed_steps += 1
                self._log_metrics(metrics)

    def _train_step(self, batch):
        with self.accelerator.accumulate(self.model):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                output = self.model.forward(batch)
                loss = output["action_loss"]
            self.accelerator.backward(loss)
            if self.config.trainer.gradient_clipping is not None and self.accelerator.sync_gradients:
                self.accelerator.clip_grad_norm_(self.model.parameters(), self.config.trainer.gradient_clipping)
            self.optimizer.step()
            self.lr_scheduler.step()
            self.optimizer.zero_grad()
        return {"action_dit_loss": loss.item()}

    def _log_metrics(self, metrics):
        metrics["learning_rate"] = self.lr_scheduler.get_last_lr()[0]
        print(metrics)


def main(cfg):
    accelerator = Accelerator(gradient_accumulation_steps=cfg.trainer.gradient_accumulation_steps)
    model = build_framework(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.trainer.learning_rate)
    lr_scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=cfg.trainer.num_warmup_steps, num_training_steps=cfg.trainer.max_train_steps)
    trainer = VLATrainer(cfg, model, build_dataloader(cfg), optimizer, lr_scheduler, accelerator)
    trainer.prepare_training()
    trainer.train()
