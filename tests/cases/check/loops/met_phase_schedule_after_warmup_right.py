# expect: ok
import torch


def train(config, model, train_loader, optimizer, scheduler, scaler, device):
    global_step, accumulation_step = 0, 0
    running_loss = 0.0
    train_losses = []
    train_iter = iter(train_loader)
    optimizer.zero_grad()
    while global_step < config.max_steps:
        try:
            x, y = next(train_iter)
        except StopIteration:
            train_iter = iter(train_loader)
            x, y = next(train_iter)
        x, y = x.to(device), y.to(device)
        with torch.cuda.amp.autocast(dtype=torch.float16):
            logits = model(x)
            loss, metrics = compute_phase_loss(logits, y, config)
            loss = loss / config.gradient_accumulation
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        running_loss += loss.item() * config.gradient_accumulation
        accumulation_step += 1
        if accumulation_step % config.gradient_accumulation == 0:
            if scaler is not None:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()
            if global_step >= config.warmup_steps:
                scheduler.step()
            global_step += 1
            train_losses.append(running_loss / config.gradient_accumulation)
            running_loss = 0.0
            if global_step % config.log_every == 0:
                print(global_step, train_losses[-1])
