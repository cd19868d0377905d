# expect: mistake apply_inside_loop
import torch


def train_one_epoch(backbone, head, loader, opt_backbone, opt_head, loss_fn, accum=8):
    backbone.train()
    head.train()
    opt_backbone.zero_grad()
    opt_head.zero_grad()
    for idx, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        loss = loss_fn(head(backbone(x)), y) / accum
        loss.backward()
        opt_head.step()
        opt_head.zero_grad()
        if (idx + 1) % accum == 0 or (idx + 1) == len(loader):
            opt_backbone.step()
            opt_backbone.zero_grad()
