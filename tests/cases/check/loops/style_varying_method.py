# expect: mistake varying_accum_modulo
class LoopRunner:
    def get_accum(self, it):
        return 1 if it < 1000 else self.accum_final
    def run(self, loader):
        it = 0
        for epoch in range(self.epochs):
            for batch in loader:
                accum = self.get_accum(it)
                loss = self.model(batch) / accum
                loss.backward()
                it += 1
                if it % accum == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
