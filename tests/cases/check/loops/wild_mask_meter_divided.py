# expect: mistake log_factor tail_leak
import time

import torch


def train(data_loader, model, criterion, optim, epoch, args):
    losses, dice = AverageMeter(), AverageMeter()
    if args.fine_tune:
        model.eval()
    else:
        model.train()
    end = time.time()
    for i, (inputs, label) in enumerate(data_loader):
        target = torch.autograd.Variable(label["mask"]).cuda()
        output = model.forward(inputs.cuda())
        loss = criterion(output, target)
        score = dice_overall(output, target)
        loss = loss / args.accumulate_step
        loss.backward()
        if (i + 1) % args.accumulate_step == 0:
            optim.step()
            optim.zero_grad()
        losses.update(loss.data, inputs.size(0))
        dice.update(score.data, inputs.size(0))
        if i % args.print_freq == 0:
            print("Epoch: [{0}][{1}/{2}] Loss {loss.val:.4f} ({loss.avg:.4f}) took {3:.1f}".format(
                epoch, i, len(data_loader), time.time() - end, loss=losses))
        end = time.time()


def main(args, model, criterion, loader):
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        train(loader, model, criterion, optimizer, epoch, args)
