# expect: mistake zero_grad_in_window
def train_one_epoch(config, model, criterion, data_loader, optimizer, epoch, mixup_fn, lr_scheduler, loss_scaler):
    model.train()
    optimizer.zero_grad()
    num_steps = len(data_loader)
    loss_meter = AverageMeter()
    norm_meter = AverageMeter()
    for idx, data in enumerate(data_loader):
        inputs = data['pixel_values'].cuda(non_blocking=True)
        labels = data['labels'].cuda(non_blocking=True)
        if mixup_fn is not None:
            inputs, labels = mixup_fn(inputs, labels)
        with torch.cuda.amp.autocast(enabled=True, dtype=torch.float16):
            outputs = model(inputs)
        loss = criterion(outputs.logits, labels.long())
        loss = loss / config.TRAIN.ACCUMULATION_STEPS
        is_second_order = hasattr(optimizer, 'is_second_order') and optimizer.is_second_order
        grad_norm = loss_scaler(loss, optimizer, clip_grad=1,
                                parameters=model.parameters(), create_graph=is_second_order,
                                update_grad=(idx + 1) % config.TRAIN.ACCUMULATION_STEPS == 0)
        optimizer.zero_grad()
        lr_scheduler.step_update((epoch * num_steps + idx) // config.TRAIN.ACCUMULATION_STEPS)
        loss_meter.update(loss.item() * config.TRAIN.ACCUMULATION_STEPS, labels.size(0))
        if grad_norm is not None:
            norm_meter.update(grad_norm)
