# expect: mistake apply_inside_loop
import torch


class Learner:
    def __init__(self, model, loader, opt, loss_func, n_acc=64, bs=16):
        self.model, self.loader, self.opt, self.loss_func = model, loader, opt, loss_func
        self.n_acc = n_acc // bs
        self.count = 0

    def one_batch(self, xb, yb):
        loss = self.loss_func(self.model(xb), yb) / self.n_acc
        loss.backward()
        self.count += 1
        if self.count >= self.n_acc:
            self.opt.step()
            self.opt.zero_grad()

    def fit(self, epochs):
        for _ in range(epochs):
            self.opt.zero_grad()
            for xb, yb in self.loader:
                self.one_batch(xb, yb)
