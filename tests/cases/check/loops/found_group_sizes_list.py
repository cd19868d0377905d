# expect: ok
from contextlib import nullcontext
import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm


def accumulation_group_sizes(batches, accumulation_steps):
    full, rest = divmod(batches, accumulation_steps)
    return [accumulation_steps] * full + ([rest] if rest else [])


def finetune(config, model, train_loader, optimizer, scheduler, device, amp_enabled):
    accumulation_steps = int(config.training.get("accumulation_steps", 1))
    accumulation_groups = accumulation_group_sizes(len(train_loader), accumulation_steps)
    scaler = torch.cuda.amp.GradScaler(enabled=amp_enabled)
    for epoch in range(int(config.training.epochs)):
        model.train()
        optimizer.zero_grad(set_to_none=True)
        accumulated_loss = torch.zeros((), device=device)
        for batch_index, batch in enumerate(tqdm(train_loader, desc=f"finetune {epoch + 1}")):
            group_index = batch_index // accumulation_steps
            group_start = group_index * accumulation_steps
            group_size = accumulation_groups[group_index]
            should_update = batch_index - group_start + 1 == group_size
            synchronization = (
                model.no_sync()
                if isinstance(model, DistributedDataParallel) and not should_update
                else nullcontext()
            )
            with synchronization:
                with torch.autocast(device_type=device.type, enabled=amp_enabled):
                    inputs = batch["short"].to(device, non_blocking=True)
                    labels = batch["label"].to(device, non_blocking=True)
                    loss = F.cross_entropy(model(inputs), labels)
                scaler.scale(loss / group_size).backward()
            accumulated_loss += loss.detach() / group_size
            if should_update:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
                print(accumulated_loss.item())
                accumulated_loss.zero_()
