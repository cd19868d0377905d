# expect: ok
import torch
from accelerate import Accelerator


class VideoTrainer:
    def __init__(self, cfg, transformer, dataset):
        self._cfg = cfg
        self._accelerator = Accelerator(gradient_accumulation_steps=cfg.optimization.gradient_accumulation_steps, mixed_precision="bf16")
        self._transformer = transformer
        self._dataset = dataset
        self._global_step = 0

    def _training_step(self, batch):
        noise = torch.randn_like(batch["latents"])
        target = noise - batch["latents"]
        prediction = self._transformer(batch["latents"], batch["timesteps"], batch["prompt_embeds"])
        return (prediction - target).pow(2).mean()

    def train(self):
        cfg = self._cfg
        loader = torch.utils.data.DataLoader(self._dataset, batch_size=cfg.optimization.batch_size, shuffle=True, drop_last=True)
        params = [p for p in self._transformer.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(params, lr=cfg.optimization.learning_rate)
        self._transformer, self._optimizer, loader = self._accelerator.prepare(self._transformer, optimizer, loader)
        data_iter = iter(loader)
        for step in range(cfg.optimization.steps * cfg.optimization.gradient_accumulation_steps):
            try:
                batch = next(data_iter)
            except StopIteration:
                data_iter = iter(loader)
                batch = next(data_iter)
            with self._accelerator.accumulate(self._transformer):
                loss = self._training_step(batch)
                self._accelerator.backward(loss)
                if self._accelerator.sync_gradients and cfg.optimization.max_grad_norm > 0:
                    self._accelerator.clip_grad_norm_(params, cfg.optimization.max_grad_norm)
                self._optimizer.step()
                self._optimizer.zero_grad()
            if self._accelerator.sync_gradients:
                self._global_step += 1
                if self._accelerator.is_main_process:
                    print(self._global_step, loss.item())
