# expect: mistake tail_leak
import numpy as np
import torch
from tqdm import tqdm


class SoftLabelTrainer:
    def __init__(self, model, train_loader, criterion, optimizer, scheduler, grad_accum_steps=8):
        self.model = model
        self.train_loader = train_loader
        self.criterion = criterion
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.grad_accum_steps = grad_accum_steps

    def train_epoch(self, max_steps=None):
        self.model.train()
        total_loss = 0
        all_metrics = []
        pbar = tqdm(self.train_loader)
        for step, batch in enumerate(pbar):
            if max_steps and step >= max_steps:
                break
            ids, mask = batch["input_ids"].cuda(), batch["attention_mask"].cuda()
            labels, soft = batch["labels"].cuda(), batch["soft_labels"].cuda()
            with torch.cuda.amp.autocast(dtype=torch.bfloat16):
                outputs = self.model(input_ids=ids, attention_mask=mask)
                logits = outputs.logits[:, -1, :3]
                loss, metrics = self.criterion(logits, labels, soft)
                loss = loss / self.grad_accum_steps
            loss.backward()
            if (step + 1) % self.grad_accum_steps == 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
            total_loss += loss.item() * self.grad_accum_steps
            all_metrics.append(metrics)
            if step % 20 == 0:
                torch.cuda.empty_cache()
            pbar.set_postfix({"loss": f"{metrics['loss']:.4f}"})
        self.scheduler.step()
        actual = len(all_metrics) if all_metrics else 1
        return {"loss": total_loss / actual, "ce": np.mean([m["ce"] for m in all_metrics])}

    def train(self, epochs):
        for epoch in range(epochs):
            stats = self.train_epoch()
            print(epoch, stats["loss"])
