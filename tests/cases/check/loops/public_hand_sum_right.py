# expect: ok
import torch


def train_steps(model, sampler, optimizer, ema, steps, grad_acc, device):
    for step in range(steps):
        optimizer.zero_grad()
        total_loss = torch.zeros((), device=device)
        for _ in range(grad_acc):
            x, t = sampler(device)
            noise = torch.randn_like(x)
            pred = model(x + noise * t[:, None], t)
            loss = torch.nn.functional.mse_loss(pred, noise)
            total_loss = total_loss + loss / grad_acc
        total_loss.backward()
        optimizer.step()
        ema.update()
        if step % 50 == 0:
            print(f"step {step} loss {total_loss.item():.4f}")
