# expect: ok
import torch
from torch.amp import GradScaler, autocast


def train(model, train_loader, optimizer, scheduler, epochs, grad_accum, grad_clip, device):
    scaler = GradScaler("cuda")
    for epoch in range(1, epochs + 1):
        model.train()
        optimizer.zero_grad()
        accum_count = 0
        total_loss_sum = 0.0
        for batch_idx, (stacks, label, _sample, index) in enumerate(train_loader):
            stacks = stacks[0].to(device)
            labels_t = torch.tensor([float(label[0])], device=device)
            with autocast(device_type=device.type, dtype=torch.float16):
                logits = model(stacks, index)
                loss, _ = batch_bag_mean_loss([logits], labels_t)
                loss = loss / grad_accum
            scaler.scale(loss).backward()
            accum_count += 1
            total_loss_sum += loss.item() * grad_accum
            if accum_count % grad_accum == 0 or (batch_idx + 1) == len(train_loader):
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        print(epoch, total_loss_sum / len(train_loader))
        scheduler.step()
