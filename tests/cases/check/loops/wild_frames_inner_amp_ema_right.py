# expect: ok
import torch
from tqdm import tqdm


def train(cfg, model, ema, train_iter, optimizer, scheduler, writer, device, start_step=0):
    scaler = torch.amp.GradScaler("cuda", enabled=cfg.training.use_amp)
    optimizer.zero_grad(set_to_none=True)
    for step in tqdm(range(start_step, cfg.training.num_steps)):
        model.train()
        accum_loss = 0.0
        for _ in range(cfg.data.grad_accum):
            batch = next(train_iter)
            loss = compute_loss(model, batch, device, use_amp=cfg.training.use_amp, training=True) / cfg.data.grad_accum
            scaler.scale(loss).backward()
            accum_loss += loss.item()
            del loss, batch
        scaler.unscale_(optimizer)
        clip = cfg.training.grad_clip
        max_norm = clip if (clip is not None and clip > 0) else float("inf")
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        scheduler.step()
        if cfg.training.use_ema and step >= cfg.training.ema_start:
            ema.update(model)
        writer.add_scalar("Train/Loss", accum_loss, step)
        writer.add_scalar("Train/Norm", grad_norm, step)
