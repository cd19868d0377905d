# expect: ok
import time

import torch
import torch.nn.functional as F


def bench(model, dataloader, noise_scheduler, trainable_params, optimizer, scheduler, num_steps, grad_accum, device):
    step = 0
    losses = []
    start_time = time.time()
    optimizer.zero_grad()
    while step < num_steps:
        for batch in dataloader:
            if step >= num_steps:
                break
            latents = batch["latents"].to(device=device, dtype=torch.bfloat16)
            noise = torch.randn_like(latents)
            timesteps = torch.randint(0, 1000, (latents.shape[0],), device=device)
            noisy = noise_scheduler.add_noise(latents, noise, timesteps)
            with torch.amp.autocast("cuda", dtype=torch.bfloat16):
                out = model(hidden_states=noisy, timestep=timesteps, return_dict=False)[0]
                loss = F.mse_loss(out, noise) / grad_accum
            loss.backward()
            if (step + 1) % grad_accum == 0 or step == num_steps - 1:
                torch.nn.utils.clip_grad_norm_(trainable_params, 1.0)
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
            loss_val = loss.item() * grad_accum
            losses.append(loss_val)
            if step % 50 == 0 or step == num_steps - 1:
                print(f"step {step}/{num_steps} loss={loss_val:.6f} {time.time() - start_time:.0f}s")
            step += 1
    return sum(losses[-100:]) / max(len(losses[-100:]), 1)
