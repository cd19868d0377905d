# expect: ok
import numpy as np
import torch
from tqdm import tqdm


def train_with_gradient_accumulation(model, images, targets, optimizer, scaler, config):
    with torch.cuda.amp.autocast(enabled=config.use_amp):
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        scaled = losses / config.gradient_accumulation_steps
    scaler.scale(scaled).backward()
    return losses.item()


def main(config, model, train_loader, optimizer, scaler, lr_scheduler, device):
    for epoch in range(config.num_epochs):
        model.train()
        epoch_losses = []
        optimizer.zero_grad(set_to_none=True)
        pbar = tqdm(train_loader, desc=f"Epoch {epoch+1}/{config.num_epochs}")
        for batch_idx, (images, targets) in enumerate(pbar):
            try:
                images = [img.to(device) for img in images]
                targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
                loss = train_with_gradient_accumulation(model, images, targets, optimizer, scaler, config)
                if (batch_idx + 1) % config.gradient_accumulation_steps == 0:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip_val)
                    scaler.step(optimizer)
                    scaler.update()
                    optimizer.zero_grad(set_to_none=True)
                if loss > 0:
                    epoch_losses.append(loss)
                avg_loss = np.mean(epoch_losses) if epoch_losses else float("inf")
                pbar.set_postfix({"loss": f"{loss:.4f}", "avg_loss": f"{avg_loss:.4f}"})
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                continue
        lr_scheduler.step()
