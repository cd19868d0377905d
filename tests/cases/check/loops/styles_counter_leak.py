# expect: mistake tail_leak
import torch


class Engine:
    def __init__(self, model, optimizer, accumulate):
        self.model, self.optimizer, self.accumulate = model, optimizer, accumulate
        self.optimizer.zero_grad()

    def run_epoch(self, loader):
        for k, (x, y) in enumerate(loader):
            loss = self.model.loss(x, y) / self.accumulate
            loss.backward()
            if k % self.accumulate == self.accumulate - 1:
                self.optimizer.step()
                self.optimizer.zero_grad()

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.run_epoch(loader)
