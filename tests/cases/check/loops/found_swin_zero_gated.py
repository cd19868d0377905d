# expect: ok
import math
import sys
import torch


def train_class_batch(model, samples, target, criterion):
    outputs = model(samples)
    loss = criterion(outputs, target)
    return loss, outputs


def train_one_epoch(model, criterion, data_loader, optimizer, device, epoch, loss_scaler, max_norm=0, model_ema=None,
                    mixup_fn=None, start_steps=None, lr_schedule_values=None, num_training_steps_per_epoch=None, update_freq=None):
    model.train(True)
    metric_logger = MetricLogger(delimiter="  ")
    optimizer.zero_grad()
    for data_iter_step, (samples, targets) in enumerate(metric_logger.log_every(data_loader, 10, "Epoch")):
        step = data_iter_step // update_freq
        if step >= num_training_steps_per_epoch:
            continue
        it = start_steps + step
        if lr_schedule_values is not None and data_iter_step % update_freq == 0:
            for param_group in optimizer.param_groups:
                param_group["lr"] = lr_schedule_values[it] * param_group["lr_scale"]
        samples = samples.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        with torch.cuda.amp.autocast():
            loss, output = train_class_batch(model, samples, targets, criterion)
        loss_value = loss.item()
        if not math.isfinite(loss_value):
            print("loss {} is not finite".format(loss_value))
            sys.exit(1)
        is_second_order = hasattr(optimizer, "is_second_order") and optimizer.is_second_order
        loss /= update_freq
        grad_norm = loss_scaler(loss, optimizer, clip_grad=max_norm, parameters=model.parameters(),
                                create_graph=is_second_order, update_grad=(data_iter_step + 1) % update_freq == 0)
        if (data_iter_step + 1) % update_freq == 0:
            optimizer.zero_grad()
            if model_ema is not None:
                model_ema.update(model)
        torch.cuda.synchronize()
        metric_logger.update(loss=loss_value)
