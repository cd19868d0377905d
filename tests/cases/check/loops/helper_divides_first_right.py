# expect: ok
class Loop:
    def micro(self, batch):
        loss = self.model(batch).mean()
        (loss / self.accum_steps).backward()
        return loss.detach()

    def epoch(self, loader):
        for i, batch in enumerate(loader):
            loss = self.micro(batch)
            if (i + 1) % self.accum_steps == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.optimizer.zero_grad()
