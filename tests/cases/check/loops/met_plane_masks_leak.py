# expect: mistake tail_leak
from torch.amp import GradScaler, autocast
from tqdm import tqdm


def train_epoch(model, loader, optimizer, scheduler, scaler, device, config, epoch):
    model.train()
    total_loss, num_batches = 0, 0
    pbar = tqdm(loader, desc=f"Epoch {epoch + 1} Training")
    for batch_idx, batch in enumerate(pbar):
        pixels, seg, planes = batch["pixel_values"].to(device), batch["seg_labels"].to(device), batch["plane_labels"].to(device)
        with autocast("cuda", enabled=True):
            plane_logits, seg_masks = model(pixels)
            loss, _ = model.compute_loss(plane_logits, seg_masks, planes, seg)
        loss = loss / config.gradient_accumulation
        scaler.scale(loss).backward()
        if (batch_idx + 1) % config.gradient_accumulation == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            scheduler.step()
        total_loss += loss.item() * config.gradient_accumulation
        num_batches += 1
        pbar.set_postfix({"loss": f"{loss.item() * config.gradient_accumulation:.4f}"})
    return total_loss / num_batches


def main(model, loader, optimizer, scheduler, device, config):
    scaler = GradScaler("cuda")
    for epoch in range(config.epochs):
        print(train_epoch(model, loader, optimizer, scheduler, scaler, device, config, epoch))
