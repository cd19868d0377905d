# expect: ok
import torch


def fit(model, loader, epochs, lr, accum):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        opt.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            (loss / accum).backward()
            if (i + 1) % accum == 0 or i == len(loader) - 1:
                opt.step()
                opt.zero_grad()
        sched.step()
