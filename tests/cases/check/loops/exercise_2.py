# expect: ok
def train_epoch(model, loader, optimizer, scheduler, scaler, accumulation_steps, max_norm, device):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    batches = len(loader)
    for index, batch in enumerate(loader):
        last = index + 1 == batches
        window = accumulation_steps if index < batches - batches % accumulation_steps else batches % accumulation_steps
        with torch.autocast(device_type=device):
            loss = model(**{k: v.to(device) for k, v in batch.items()}).loss
        scaler.scale(loss / window).backward()
        if (index + 1) % accumulation_steps == 0 or last:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() >= before:
                scheduler.step()
            optimizer.zero_grad(set_to_none=True)
