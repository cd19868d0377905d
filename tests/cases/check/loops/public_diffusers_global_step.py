# expect: mistake ema_per_micro_step
import torch
import torch.nn.functional as F
from accelerate import Accelerator


def train(args, unet, optimizer, loader, lr_scheduler, ema_unet, noise_scheduler):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    unet, optimizer, loader, lr_scheduler = accelerator.prepare(unet, optimizer, loader, lr_scheduler)
    for epoch in range(args.num_train_epochs):
        for batch in loader:
            with accelerator.accumulate(unet):
                noise = torch.randn_like(batch["latents"])
                t = torch.randint(0, 1000, (noise.shape[0],), device=noise.device)
                noisy = noise_scheduler.add_noise(batch["latents"], noise, t)
                loss = F.mse_loss(unet(noisy, t, batch["context"]).sample, noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(unet.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            ema_unet.step(unet.parameters())
