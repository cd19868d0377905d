# expect: mistake tail_leak sched_units
import contextlib

import torch
from torch.cuda.amp import GradScaler
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Trainer:
    def __init__(self, gradient_accumulation_steps, epochs, model, dataset, batch_size, gpu_id, max_seq_len=1024):
        self.loss_per_step_lst = []
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.epochs = epochs
        self.gpu_id = gpu_id
        self.model = DDP(model, device_ids=[gpu_id])
        self.dataloader = DataLoader(dataset, batch_size=batch_size, sampler=DistributedSampler(dataset))
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=6e-4)
        self.loss_scaler = GradScaler()
        total_tokens = max_seq_len * len(dataset) * epochs
        total_steps = total_tokens // (batch_size * max_seq_len * gradient_accumulation_steps)
        self.lr_scheduler = get_cosine_schedule_with_warmup(self.optimiser, int(0.01 * total_steps), total_tokens)
        self.cross_entropy_loss = torch.nn.CrossEntropyLoss()

    def loss_fn(self, y_pred, y_true):
        return self.cross_entropy_loss(y_pred.reshape(-1, 32000), y_true.reshape(-1))

    def _run_epoch(self, model, dataloader, epoch):
        for i, batch in enumerate(dataloader):
            x = batch.to(self.gpu_id)
            is_accumulating = (i + 1) % self.gradient_accumulation_steps != 0
            with model.no_sync() if is_accumulating else contextlib.nullcontext():
                with torch.autocast(dtype=torch.float16, device_type="cuda"):
                    raw_loss = self.loss_fn(y_pred=model(x[:, :-1]), y_true=x[:, 1:])
                self.loss_per_step_lst.append(raw_loss.item())
                loss = raw_loss / self.gradient_accumulation_steps
                scaled_loss = self.loss_scaler.scale(loss)
                scaled_loss.backward()
            if not is_accumulating:
                self.loss_scaler.unscale_(self.optimiser)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                self.loss_scaler.step(self.optimiser)
                self.loss_scaler.update()
                self.lr_scheduler.step()
                self.optimiser.zero_grad()

    def train(self):
        for epoch in range(self.epochs):
            self._run_epoch(self.model, self.dataloader, epoch)
