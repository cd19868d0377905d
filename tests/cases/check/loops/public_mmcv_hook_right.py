# expect: ok
import torch


class GradientCumulativeHook:
    def __init__(self, cumulative_iters=1, clip=None):
        self.cumulative_iters = cumulative_iters
        self.clip = clip

    def after_train_iter(self, runner):
        factor = min(self.cumulative_iters, runner.max_iters - runner.iter // self.cumulative_iters * self.cumulative_iters)
        loss = runner.outputs["loss"] / factor
        loss.backward()
        if (runner.iter + 1) % self.cumulative_iters == 0 or runner.iter + 1 == runner.max_iters:
            if self.clip:
                torch.nn.utils.clip_grad_norm_(runner.model.parameters(), self.clip)
            runner.optimizer.step()
            runner.optimizer.zero_grad()


class IterRunner:
    def __init__(self, model, optimizer, loader, max_iters, cumulative_iters):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.max_iters = max_iters
        self.iter = 0
        self.hook = GradientCumulativeHook(cumulative_iters)

    def run(self):
        self.optimizer.zero_grad()
        while self.iter < self.max_iters:
            for data in self.loader:
                self.outputs = self.model.train_step(data, self.optimizer)
                self.hook.after_train_iter(self)
                self.iter += 1
                if self.iter >= self.max_iters:
                    break
