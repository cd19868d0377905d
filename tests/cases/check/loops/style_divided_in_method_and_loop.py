# expect: mistake double_division
class Step:
    def loss(self, batch):
        out = self.model(**batch)
        return out.loss / self.cfg.grad_accum
    def run(self):
        for i, batch in enumerate(self.loader):
            loss = self.loss(batch) / self.cfg.grad_accum
            loss.backward()
            if (i + 1) % self.cfg.grad_accum == 0:
                self.opt.step()
                self.opt.zero_grad()
