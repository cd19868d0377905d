# expect: mistake divide_after_backward
class Loop:
    def micro(self, batch):
        loss = self.model(batch).mean()
        loss.backward()
        return loss / self.accum_steps

    def epoch(self, loader):
        for i, batch in enumerate(loader):
            loss = self.micro(batch)
            if (i + 1) % self.accum_steps == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.optimizer.zero_grad()
