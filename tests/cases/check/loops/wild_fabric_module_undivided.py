# expect: mistake no_division tail_leak
from tqdm import tqdm


def train_epoch(fabric, model, train_loader, optimizer, grad_clip, grad_accum_steps, max_batches=None, epoch=0):
    model.train()
    train_losses = []
    global_step = epoch * len(train_loader)
    total = min(len(train_loader), max_batches) if max_batches is not None else None
    pbar = tqdm(train_loader, desc="Training", total=total)
    for batch_idx, batch in enumerate(pbar):
        if max_batches is not None and batch_idx >= max_batches:
            break
        is_accumulating = (batch_idx + 1) % grad_accum_steps != 0
        with fabric.no_backward_sync(model, enabled=is_accumulating):
            loss = model.training_step(batch, batch_idx)
            fabric.backward(loss)
        if not is_accumulating:
            if grad_clip > 0:
                fabric.clip_gradients(model, optimizer, max_norm=grad_clip)
            optimizer.step()
            optimizer.zero_grad()
        train_losses.append(loss.item())
        pbar.set_postfix({"loss": loss.item()})
    return sum(train_losses) / len(train_losses)
