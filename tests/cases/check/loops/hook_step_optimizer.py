# expect: mistake step_in_backward_hook
class FusedOptimizer:
    def attach(self, model):
        for p in model.parameters():
            optimizer = SGD([p], lr=self.lr)
            def step_now(parameter, optimizer=optimizer):
                optimizer.step()
                optimizer.zero_grad()
            p.register_post_accumulate_grad_hook(step_now)

    def train(self, model, loader, accumulation_steps):
        self.attach(model)
        for i, batch in enumerate(loader):
            loss = model(batch) / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                self.scheduler.step()
