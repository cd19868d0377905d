# expect: mistake unscale_twice
class Amp:
    def step(self, loss, boundary):
        self.scaler.scale(loss / self.accum_steps).backward()
        self.scaler.unscale_(self.optimizer)
        if boundary:
            torch.nn.utils.clip_grad_norm_(self.params, 1.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
    def run(self, loader):
        for i, b in enumerate(loader):
            self.step(self.model(b), (i + 1) % self.accum_steps == 0)
