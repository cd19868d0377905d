# expect: mistake clip_per_micro_step no_division
class OptimizerCallback(Callback):
    def __init__(self, metric_key, accumulation_steps=4, grad_clip_fn=None):
        self.metric_key = metric_key
        self.accumulation_steps = accumulation_steps
        self.grad_clip_fn = torch.nn.utils.clip_grad_norm_
        self._accumulation_counter = 0

    def on_batch_end(self, runner):
        if runner.is_train_loader:
            self._accumulation_counter += 1
            need_gradient_step = self._accumulation_counter % self.accumulation_steps == 0
            loss = runner.batch_metrics[self.metric_key]
            loss.backward()
            torch.nn.utils.clip_grad_norm_(runner.model.parameters(), 1.0)
            if need_gradient_step:
                runner.optimizer.step()
                runner.optimizer.zero_grad()
