# expect: mistake no_sync_inverted
import contextlib

import torch


class Trainer:
    def __init__(self, args, model, criterion, optimizer):
        self.args = args
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer

    def train_step(self, samples):
        self.model.train()
        self.optimizer.zero_grad()
        n = len(samples)
        for i, sample in enumerate(samples):
            def maybe_no_sync():
                if self.args.world_size > 1 and i == n - 1:
                    return self.model.no_sync()
                return contextlib.nullcontext()

            with maybe_no_sync():
                net_output = self.model(**sample["net_input"])
                loss = self.criterion(net_output, sample["target"]) / n
                loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip_norm)
        self.optimizer.step()

    def train_epoch(self, grouped):
        for samples in grouped:
            self.train_step(samples)
