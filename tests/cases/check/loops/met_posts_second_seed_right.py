# expect: ok
import numpy as np
import torch
from tqdm import tqdm

import config


def train(dataset, loader, model, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda", enabled=config.FP16)
    history = []
    epochs = int(config.FULL_TRAIN_EPOCHS)
    for epoch in range(1, epochs + 1):
        model.train(); optimizer.zero_grad(set_to_none=True); losses = []
        progress = tqdm(loader, desc=f"full epoch {epoch}/{epochs}")
        for step, batch in enumerate(progress, 1):
            batch = _move(batch, device)
            with torch.autocast(device_type="cuda", enabled=config.FP16):
                loss = criterion(
                    model(batch["input_ids"], batch["attention_mask"]), batch
                )["loss"] / config.GRADIENT_ACCUMULATION
            scaler.scale(loss).backward()
            losses.append(float(loss.detach()) * config.GRADIENT_ACCUMULATION)
            if step % config.GRADIENT_ACCUMULATION == 0 or step == len(loader):
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), config.GRAD_CLIP)
                scaler.step(optimizer); scaler.update(); optimizer.zero_grad(set_to_none=True)
            if step % 100 == 0:
                progress.set_postfix(loss=f"{np.mean(losses[-100:]):.3f}")
        history.append({"epoch": epoch, "train_loss": float(np.mean(losses))})
        print(history[-1], flush=True)
