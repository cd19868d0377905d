# expect: mistake zero_grad_in_window
class Learner:
    def __init__(self, net, opt, accumulate_every=8):
        self.net = net
        self.opt = opt
        self.accumulate_every = accumulate_every
        self.pending = 0

    def _loss(self, batch):
        prediction = self.net(batch["x"])
        return torch.nn.functional.mse_loss(prediction, batch["y"])

    def _learn(self, batch):
        self.opt.zero_grad(set_to_none=True)
        loss = self._loss(batch) / self.accumulate_every
        loss.backward()
        self.pending += 1
        if self.pending >= self.accumulate_every:
            self._update()

    def _update(self):
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()
        self.pending = 0

    def run(self, batches, epochs):
        for _ in range(epochs):
            for batch in batches:
                self._learn(batch)
            if self.pending:
                self._update()
