# expect: note tail_dropped
from factory import make_parts


class Runner:
    def __init__(self, settings):
        self.net, self.solver, self.batches = make_parts(settings)
        self.accum_steps = settings.accum_steps

    def epoch(self):
        self.solver.zero_grad()
        for i, (x, y) in enumerate(self.batches):
            loss = self.net(x, y) / self.accum_steps
            loss.backward()
            if (i + 1) % self.accum_steps == 0:
                self.solver.step()
                self.solver.zero_grad()
