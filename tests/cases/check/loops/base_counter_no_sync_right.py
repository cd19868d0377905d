# expect: ok
from toolkit import LoopBase


class Loop(LoopBase):
    def one(self, batch):
        update = self.seen % self.accumulate_steps == 0
        with self.no_sync(not update):
            loss = self.objective(self.forward(batch), batch)
            (loss / self.accumulate_steps).backward()
        if update:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.detach()

    def epoch(self, data):
        for batch in data:
            self.seen += 1
            self.one(batch)
        self.optimizer.zero_grad()
        self.seen = 0
