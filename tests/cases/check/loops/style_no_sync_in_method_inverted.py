# expect: mistake no_sync_inverted
class Wrapper:
    def micro(self, batch, last):
        if last:
            with self.ddp.no_sync():
                self._fb(batch)
        else:
            self._fb(batch)
    def _fb(self, batch):
        loss = self.ddp(**batch).loss / self.accum
        loss.backward()
    def train(self, loader):
        for i, batch in enumerate(loader):
            last = (i + 1) % self.accum == 0
            self.micro(batch, last)
            if last:
                self.opt.step()
                self.opt.zero_grad()
