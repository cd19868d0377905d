# expect: note tail_dropped
import torch


def epoch(args, loader, net, criterion, optimizer):
    for i, (x, y) in enumerate(loader):
        loss = criterion(net(x), y)
        if i % args.iter_size == 0:
            optimizer.zero_grad()
        loss.backward()
        if (i + 1) % args.iter_size == 0:
            for p in net.parameters():
                p.grad.data.mul_(1 / args.iter_size)
            optimizer.step()
