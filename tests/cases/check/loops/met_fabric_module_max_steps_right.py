# expect: ok
class FabricLoop:
    def __init__(self, fabric, model, optimizer, scheduler, train_dataloader, cfg):
        self.fabric, self.model, self.optimizer, self.scheduler = fabric, model, optimizer, scheduler
        self.train_dataloader = train_dataloader
        self.accumulate_grad_batches = cfg.accumulate_grad_batches
        self.gradient_clip_val = cfg.gradient_clip_val
        self.max_steps = cfg.max_steps
        self.global_step = 0

    def fit(self):
        self.model.train()
        self.optimizer.zero_grad()
        for batch_idx, batch in enumerate(self.train_dataloader):
            if self.global_step >= self.max_steps:
                break
            is_accumulating = (batch_idx + 1) % self.accumulate_grad_batches != 0
            with self.fabric.no_backward_sync(self.model, enabled=is_accumulating):
                loss = self.model.training_step(batch, batch_idx)
                self.fabric.backward(loss / self.accumulate_grad_batches)
            if not is_accumulating:
                if self.gradient_clip_val:
                    self.fabric.clip_gradients(self.model, self.optimizer, max_norm=self.gradient_clip_val)
                self.optimizer.step()
                self.optimizer.zero_grad()
                if self.scheduler is not None:
                    self.scheduler.step()
                self.global_step += 1
                if self.global_step % 50 == 0:
                    self.fabric.log("train_loss", loss.item(), step=self.global_step)
