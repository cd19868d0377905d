# expect: ok
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from tqdm import tqdm


class SegTrainer:
    def __init__(self, net, train_loader, loss_function, max_iterations, accumulation_steps=4):
        self.net = net
        self.train_loader = train_loader
        self.loss_function = loss_function
        self.accumulation_steps = accumulation_steps
        self.max_iterations = max_iterations
        self.grad_clip_norm = 1.0
        self.global_step = 0
        self.opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
        self.scaler = torch.amp.GradScaler('cuda')
        self.scheduler = CosineAnnealingWarmRestarts(self.opt, T_0=1000, T_mult=1, eta_min=1e-6)

    def train(self):
        self.net.train()
        self.opt.zero_grad()
        epoch_loss = 0.0
        step = 0
        epoch_iterator = tqdm(self.train_loader, desc="train", dynamic_ncols=True)
        for step, batch in enumerate(epoch_iterator, start=1):
            x = batch["image"].cuda()
            y = batch["label"].cuda()
            with torch.amp.autocast('cuda'):
                logit_map = self.net(x)
                loss = self.loss_function(logit_map, y) / self.accumulation_steps
            self.scaler.scale(loss).backward()
            if step % self.accumulation_steps == 0:
                self.scaler.unscale_(self.opt)
                nn.utils.clip_grad_norm_(self.net.parameters(), self.grad_clip_norm)
                self.scaler.step(self.opt)
                self.scaler.update()
                self.scheduler.step()
                self.opt.zero_grad()
            epoch_loss += loss.item() * self.accumulation_steps
            epoch_iterator.set_description(f"{self.global_step}/{self.max_iterations} {loss.item() * self.accumulation_steps:.4f}")
            self.global_step += 1
        return epoch_loss / step

    def run(self):
        while self.global_step < self.max_iterations:
            print(self.train())
