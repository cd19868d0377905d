# expect: mistake tail_leak log_factor
import time
import torch
from apex import amp


class DataPrefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input, self.next_target = None, None
            return
        self.next_input = self.next_input.float()

    def next(self):
        inputs, target = self.next_input, self.next_target
        self.preload()
        return inputs, target


def train(train_loader, model, criterion, optimizer, scheduler, epoch, logger, args):
    top1 = AverageMeter()
    losses = AverageMeter()
    model.train()
    iters = len(train_loader.dataset) // args.batch_size
    prefetcher = DataPrefetcher(train_loader)
    inputs, labels = prefetcher.next()
    iter_index = 1
    while inputs is not None:
        inputs, labels = inputs.cuda(), labels.cuda()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss = loss / args.accumulation_steps
        if args.apex:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        if iter_index % args.accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
        acc1, acc5 = accuracy(outputs, labels, topk=(1, 5))
        top1.update(acc1.item(), inputs.size(0))
        losses.update(loss.item(), inputs.size(0))
        inputs, labels = prefetcher.next()
        if iter_index % args.print_interval == 0:
            logger.info(f"train: epoch {epoch:0>3d}, iter [{iter_index:0>4d}, {iters:0>4d}], top1 {acc1.item():.2f}, loss {loss.item():.4f}")
        iter_index += 1
    scheduler.step()
    return top1.avg, losses.avg


def main(args, logger):
    train_loader, model, criterion, optimizer, scheduler = setup(args)
    for epoch in range(1, args.epochs + 1):
        acc, loss = train(train_loader, model, criterion, optimizer, scheduler, epoch, logger, args)
        logger.info(f"train: epoch {epoch:0>3d}, top1 {acc:.2f}, losses {loss:.4f}")
