# expect: note tail_dropped
class Session:
    def resume(self, path):
        checkpoint = torch.load(path)
        self.updates = checkpoint["updates"]
        self.first_epoch, self.first_batch = divmod(self.updates * self.accumulation_steps, len(self.loader))

    def fit(self):
        for epoch in range(self.first_epoch, self.epochs):
            self.optimizer.zero_grad()
            for i, batch in enumerate(self.loader):
                loss = self.model(batch) / self.accumulation_steps
                loss.backward()
                if (i + 1) % self.accumulation_steps == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    self.updates += 1
