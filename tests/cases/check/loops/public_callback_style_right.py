# expect: ok
import torch


class AccumulateCallback:
    def __init__(self, every):
        self.every, self.count = every, 0

    def before_backward(self, learner):
        learner.loss = learner.loss / self.every

    def should_step(self, learner):
        self.count += 1
        if self.count == self.every:
            self.count = 0
            return True
        return False


class Learner:
    def __init__(self, model, loader, opt, loss_func, accumulate=4):
        self.model, self.loader, self.opt, self.loss_func = model, loader, opt, loss_func
        self.accum = AccumulateCallback(accumulate)

    def one_batch(self, xb, yb):
        self.loss = self.loss_func(self.model(xb), yb)
        self.accum.before_backward(self)
        self.loss.backward()
        if self.accum.should_step(self):
            self.opt.step()
            self.opt.zero_grad()

    def fit(self, epochs):
        for _ in range(epochs):
            self.opt.zero_grad()
            self.accum.count = 0
            for xb, yb in self.loader:
                self.one_batch(xb, yb)
