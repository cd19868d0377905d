# expect: ok
import torch
import torch.nn.functional as F
from torch.amp import autocast, GradScaler
from torch.nn.utils import clip_grad_norm_


class MaskedDiffusion:
    def __init__(self, predictor, h_args, device_str):
        self.mask_predictor = predictor
        self.h_args = h_args
        self.device_str = device_str
        self.optimizer = torch.optim.AdamW(predictor.parameters(), lr=h_args.lr)
        self.lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, h_args.total_updates)
        self.scaler = GradScaler()
        self.step = 0

    def train_step(self, input_ids):
        with autocast(device_type=self.device_str):
            logits = self.mask_predictor(input_ids)
            loss = F.cross_entropy(logits.flatten(0, 1), input_ids.flatten())
        self.scaler.scale(loss / self.h_args.accumulation_steps).backward()
        self.step += 1
        if self.step % self.h_args.accumulation_steps == 0:
            prev_scale = self.scaler.get_scale()
            self.scaler.unscale_(self.optimizer)
            clip_grad_norm_(self.mask_predictor.parameters(), max_norm=3.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
            if self.scaler.get_scale() >= prev_scale:
                self.lr_scheduler.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            losses = []
            for batch in loader:
                losses.append(self.train_step(batch["input_ids"].to(self.device_str)))
            print(f"epoch {epoch} train loss {sum(losses) / len(losses):.3f}")
