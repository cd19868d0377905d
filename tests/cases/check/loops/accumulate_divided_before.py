# expect: mistake double_division
class Trainer:
    def optimize(self, batch, optimizer, scheduler, step_optimizer=True):
        loss = self.compute_loss(batch)
        loss = loss / float(self.grad_accum_steps)
        if self.use_accelerate:
            with self.accelerator.accumulate(self.model):
                self.accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        else:
            loss.backward()
            if step_optimizer:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

    def train_epoch(self, loader):
        for step, batch in enumerate(loader):
            step_optimizer = (step + 1) % self.grad_accum_steps == 0 or step + 1 == len(loader)
            self.optimize(batch, self.optimizer[0], self.scheduler[0], step_optimizer=step_optimizer)
