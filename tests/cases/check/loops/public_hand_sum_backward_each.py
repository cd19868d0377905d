# expect: mistake geometric_weighting
import torch


def run_epoch(model, loader, optimizer, loss_func, acc_steps):
    total_loss = 0.0
    optimizer.zero_grad()
    for i, (a, b, target) in enumerate(loader):
        loss = loss_func(model(a.cuda(), b.cuda()), target.cuda()) / acc_steps
        total_loss += loss
        total_loss.backward(retain_graph=True)
        if (i + 1) % acc_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
            total_loss = 0.0
    optimizer.zero_grad()
