# expect: ok
import torch


def run(model, train_loader, criterion, optimizer, lr_schedule, total_epochs, grad_accum_steps, device, use_amp):
    scaler = torch.cuda.amp.GradScaler(enabled=use_amp)
    global_step = 0
    for epoch in range(1, total_epochs + 1):
        model.train()
        optimizer.zero_grad(set_to_none=True)
        running_loss, running_correct, running_seen = 0.0, 0, 0
        accum_counter = 0
        for batch_idx, (images, targets) in enumerate(train_loader, start=1):
            images, targets = images.to(device, non_blocking=True), targets.to(device, non_blocking=True)
            current_lr = lr_schedule.lr_at(global_step)
            for group in optimizer.param_groups:
                group["lr"] = current_lr
            with torch.cuda.amp.autocast(enabled=use_amp):
                logits = model(images)
                loss = criterion(logits, targets)
                scaled_loss = loss / grad_accum_steps
            scaler.scale(scaled_loss).backward()
            batch_size_actual = int(targets.size(0))
            running_loss += float(loss.item()) * batch_size_actual
            running_correct += int((logits.argmax(1) == targets).sum())
            running_seen += batch_size_actual
            accum_counter += 1
            if accum_counter == grad_accum_steps or batch_idx == len(train_loader):
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                global_step += 1
                accum_counter = 0
        print(epoch, running_loss / running_seen, running_correct / running_seen)
