# expect: ok
from tqdm import tqdm


class FabricTrainer:
    def __init__(self, fabric, model, optimizer, scheduler, dataloader, max_epochs, grad_accum_steps, grad_clip_val):
        self.fabric = fabric
        self.model, self.optimizer = fabric.setup(model, optimizer)
        self.dataloader = fabric.setup_dataloaders(dataloader)
        self.scheduler = scheduler
        self.max_epochs = max_epochs
        self.grad_accum_steps = grad_accum_steps
        self.grad_clip_val = grad_clip_val
        self.global_step = 0

    def train(self):
        grad_accum_steps = self.grad_accum_steps
        local_step, current_epoch, should_stop = 0, 0, False
        bar = tqdm(disable=not self.fabric.is_global_zero)
        while not should_stop:
            for batch_idx, batch in enumerate(self.dataloader):
                local_step += 1
                is_accumulating = local_step % grad_accum_steps != 0
                with self.fabric.no_backward_sync(self.model, enabled=is_accumulating):
                    loss = self.model(batch)
                    self.fabric.backward(loss / grad_accum_steps)
                if self.fabric.is_global_zero:
                    bar.set_postfix_str(f"train_loss: {loss:.3f}")
                if is_accumulating:
                    continue
                if self.grad_clip_val > 0:
                    self.fabric.clip_gradients(self.model, self.optimizer, max_norm=self.grad_clip_val)
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
                if self.scheduler is not None:
                    self.scheduler.step()
                self.global_step += 1
                bar.update(1)
            current_epoch += 1
            if current_epoch >= self.max_epochs:
                should_stop = True
