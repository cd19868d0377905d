# expect: ok
import torch


def fit(model, loader, losses_of, grad_accumulation):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    optimizer.zero_grad(); seen = 0
    for k, (x, y) in enumerate(loader, 1):
        n = int(y.numel())
        parts = losses_of(model(x), y); mean = parts["total"]
        scaler.scale(mean * n).backward(); seen += n
        if k % grad_accumulation == 0 or k == len(loader):
            scaler.unscale_(optimizer)
            for p in model.parameters():
                if p.grad is not None: p.grad.div_(seen)
            scaler.step(optimizer); scaler.update(); optimizer.zero_grad(); seen = 0
