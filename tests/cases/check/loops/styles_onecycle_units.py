# expect: mistake sched_units
import torch


def fit(model, loader, epochs, max_lr, accum):
    opt = torch.optim.AdamW(model.parameters())
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr, epochs=epochs, steps_per_epoch=len(loader))
    for epoch in range(epochs):
        opt.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            (loss / accum).backward()
            if (i + 1) % accum == 0 or i == len(loader) - 1:
                opt.step()
                opt.zero_grad()
                sched.step()
