# expect: mistake log_factor
import torch
import torch.nn.functional as F
from torch.amp import autocast, GradScaler
from torch.nn.utils import clip_grad_norm_


class MaskedDiffusion:
    def __init__(self, predictor, tokenizer, h_args, device_str):
        self.mask_predictor = predictor
        self.tokenizer = tokenizer
        self.h_args = h_args
        self.device_str = device_str
        self.optimizer = torch.optim.AdamW(predictor.parameters(), lr=h_args.lr)
        self.lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, h_args.total_updates)
        self.scaler = GradScaler()
        self.step = 0

    def train_step(self, input_ids):
        with autocast(device_type=self.device_str):
            noisy, mask_indices, p_mask = self.forward_process(input_ids)
            logits = self.mask_predictor(noisy)
            token_loss = F.cross_entropy(logits[mask_indices], input_ids[mask_indices], reduction="none") / p_mask[mask_indices]
            loss = token_loss.sum() / (input_ids.shape[0] * input_ids.shape[1])
        loss = loss / self.h_args.accumulation_steps
        self.scaler.scale(loss).backward()
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

    def forward_process(self, ids, eps=1e-3):
        t = torch.rand((ids.shape[0],), device=ids.device)
        p = (1 - eps) * t[:, None] + eps
        p = p.repeat(1, ids.shape[1])
        mask = torch.rand_like(p) < p
        return torch.where(mask, self.tokenizer.mask_token_id, ids), mask, p

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            losses = []
            for batch in loader:
                losses.append(self.train_step(batch["input_ids"].to(self.device_str)))
            print(f"epoch {epoch} train loss {sum(losses) / len(losses):.3f}")
