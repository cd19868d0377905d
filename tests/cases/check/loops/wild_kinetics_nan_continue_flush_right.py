# expect: ok
import torch
from tqdm import tqdm


def train_epoch(model, loader, weighter, optimizer, device, epoch, accumulation_steps=4, ema_alpha=0.1):
    model.train()
    total_loss_epoch = 0.0
    ema = None
    optimizer.zero_grad()
    pbar = tqdm(loader, desc=f"E{epoch:02d}")
    for batch_idx, data in enumerate(pbar):
        data = data.to(device)
        data.x.requires_grad_(True)
        loss, metrics = compute_tier_loss(model, data, weighter, device, epoch=epoch)
        loss = loss / accumulation_steps
        if torch.isnan(loss):
            print(f"NaN at epoch {epoch}, skipping micro-batch")
            continue
        loss.backward()
        if ((batch_idx + 1) % accumulation_steps == 0) or (batch_idx + 1 == len(loader)):
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
        current = loss.item() * accumulation_steps
        total_loss_epoch += current
        ema = current if ema is None else (1 - ema_alpha) * ema + ema_alpha * current
        pbar.set_postfix(L=f"{ema:.3e}", kine=metrics["kine"])
    return total_loss_epoch / len(loader)
