# expect: ok
import torch


def train_one_epoch(config, model, criterion, data_loader, optimizer, epoch, lr_scheduler, loss_scaler, model_ema, logger):
    model.train()
    optimizer.zero_grad()
    steps = config.TRAIN.ACCUMULATION_STEPS
    num_steps = len(data_loader)
    loss_meter, norm_meter = AverageMeter(), AverageMeter()
    for idx, (samples, targets) in enumerate(data_loader):
        samples, targets = samples.cuda(non_blocking=True), targets.cuda(non_blocking=True)
        with torch.cuda.amp.autocast(enabled=config.AMP_ENABLE):
            outputs = model(samples)
        loss = criterion(outputs, targets)
        loss = loss / steps
        total_loss = loss
        grad_norm = loss_scaler(total_loss, optimizer, clip_grad=config.TRAIN.CLIP_GRAD, parameters=model.parameters(),
                                create_graph=False, update_grad=(idx + 1) % steps == 0)
        if (idx + 1) % steps == 0:
            optimizer.zero_grad()
            lr_scheduler.step_update((epoch * num_steps + idx) // steps)
            if model_ema is not None:
                model_ema.update(model)
        loss_meter.update(loss.item() * steps, targets.size(0))
        if grad_norm is not None:
            norm_meter.update(grad_norm)
        if idx % (config.PRINT_FREQ * steps) == 0:
            logger.info(f"Train: [{epoch}][{idx}/{num_steps}] loss {loss_meter.val:.4f} ({loss_meter.avg:.4f})")
