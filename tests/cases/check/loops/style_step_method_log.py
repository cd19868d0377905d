# expect: mistake log_factor
class Trainer:
    def __init__(self, model, opt, train_loader, val_loader, device, logger, grad_accum=1):
        self.__dict__.update(locals())
    def _step(self, batch, idx):
        x, y = (t.to(self.device) for t in batch)
        logits = self.model(x)
        loss = F.cross_entropy(logits, y)
        scaled = loss / self.grad_accum
        scaled.backward()
        if ((idx + 1) % self.grad_accum == 0) or (idx + 1 == len(self.train_loader)):
            self.opt.step()
            self.opt.zero_grad()
        return scaled.item()
    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for idx, batch in enumerate(self.train_loader):
                total += self._step(batch, idx)
            self.logger.info("epoch %d loss %.4f", epoch, total / len(self.train_loader))
