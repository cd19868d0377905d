# expect: mistake zero_grad_in_window
import time


def train_epoch(config, train_loader, model, criterion, optimizer, optimizer_scheduler, kd_loss_calculator, epoch, logger):
    losses, top1 = AverageMeter(), AverageMeter()
    batch_multiplier = config.batch_multiplier
    model.train()
    end = time.time()
    for i, (input_, target) in enumerate(train_loader):
        input_, target = input_.to(config.device), target.to(config.device)
        output = model(input_)
        criterion_loss = criterion(output, target)
        kd_loss = kd_loss_calculator.loss(input_, output)
        loss = criterion_loss + kd_loss
        losses.update(loss.item(), input_.size(0))
        top1.update(accuracy(output, target), input_.size(0))
        # compute gradient and do SGD step
        if i % batch_multiplier == 0:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            loss.backward()
        optimizer_scheduler.step(float(i) / len(train_loader))
        if i % config.print_freq == 0:
            logger.info(f"[{epoch}][{i}] loss {losses.val:.4f} ({losses.avg:.4f}) {time.time() - end:.1f}s")
        end = time.time()
