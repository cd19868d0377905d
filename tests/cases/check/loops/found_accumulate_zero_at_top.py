# expect: mistake zero_grad_in_window
import torch
from accelerate import Accelerator
from tqdm.auto import tqdm


class Trainer:
    def __init__(self, args, model, optimizer, lr_scheduler):
        self._accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps, mixed_precision="fp16")
        self.args = args
        self.model = model
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self._trn_loss_meter = AverageMeter("train loss")

    def train_one_epoch(self, dataloader):
        self.model.train()
        for step, batch in enumerate(tqdm(dataloader)):
            with self._accelerator.accumulate(self.model):
                self.optimizer.zero_grad()
                _, loss = self.model(**batch)
                self._accelerator.backward(loss)
                if self._accelerator.sync_gradients:
                    self._accelerator.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
                self.optimizer.step()
                self._trn_loss_meter.update(loss.item() , batch["label"].size(0))

    def fit(self, train_loader):
        self.model, self.optimizer, train_loader = self._accelerator.prepare(self.model, self.optimizer, train_loader)
        for epoch in range(self.args.epochs):
            self.train_one_epoch(train_loader)
