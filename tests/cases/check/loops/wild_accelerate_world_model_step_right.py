# expect: ok
from accelerate import Accelerator


class LatentTrainer:
    def __init__(self, config, model, dataloader, optimizer, lr_scheduler):
        self.config = config
        self.accelerator = Accelerator(
            mixed_precision=config.training.mixed_precision,
            gradient_accumulation_steps=config.training.gradient_accumulation_steps,
        )
        self.model, self.optimizer, self.dataloader, self.lr_scheduler = self.accelerator.prepare(
            model, optimizer, dataloader, lr_scheduler)

    def train_step(self, batch, global_step):
        grad_log = {}
        with self.accelerator.accumulate(self.model):
            loss = self.model(batch["latent"], batch["text_embed"])
            self.accelerator.backward(loss)
            if self.accelerator.sync_gradients:
                clip_norm = getattr(self.config.training, "gradient_clip_norm", None)
                if clip_norm is not None:
                    grad_log["norm"] = self.accelerator.clip_grad_norm_(self.model.parameters(), clip_norm).item()
                for i, block in enumerate(self.accelerator.unwrap_model(self.model).transformer.blocks):
                    grads = [p.grad.data.flatten() for p in block.parameters() if p.grad is not None]
                    if grads:
                        grad_log[f"block{i}"] = sum(g.norm().item() for g in grads)
            self.optimizer.step()
            self.lr_scheduler.step()
            self.optimizer.zero_grad()
        return loss, grad_log

    def train(self):
        global_step = 0
        for epoch in range(self.config.training.num_epochs):
            for batch in self.dataloader:
                loss, grad_log = self.train_step(batch, global_step)
                if self.accelerator.sync_gradients:
                    global_step += 1
                    if global_step % self.config.training.log_every == 0:
                        self.accelerator.log({"train/loss": loss.item(), **grad_log}, step=global_step)
                    if global_step % self.config.training.save_every == 0:
                        self.accelerator.save_state(f"checkpoints/{global_step}")
