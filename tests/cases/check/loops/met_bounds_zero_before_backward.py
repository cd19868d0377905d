# expect: mistake zero_grad_in_window
import time

import torch


def train_epoch(model, t, loader, eps_scheduler, criterion, opt, logger, batch_multiplier, train=True):
    losses = AverageMeter()
    model.train() if train else model.eval()
    for i, (data, labels) in enumerate(loader):
        start = time.time()
        eps = eps_scheduler.get_eps(t, int(i // batch_multiplier))
        if train and i % batch_multiplier == 0:
            opt.zero_grad()
        data, labels = data.cuda(), labels.cuda()
        output = model(data, eps=eps)
        regular_ce = criterion(output, labels)
        robust_ce = criterion(-model.lower_bound(data, eps), labels)
        loss = eps_scheduler.weight(eps) * robust_ce + regular_ce
        if train:
            opt.zero_grad()
            loss.backward()
            if i % batch_multiplier == 0 or i == len(loader) - 1:
                opt.step()
        losses.update(loss.cpu().detach().numpy(), data.size(0))
        if i % 50 == 0 and train:
            logger.log(f"[{t}:{i}] eps {eps:.6f} loss {losses.avg:.4f} {time.time() - start:.2f}s")
    return losses.avg
