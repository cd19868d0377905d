# expect: ok
import math
import torch


def train(net, loader, epochs, accum_steps):
    opt = torch.optim.AdamW(net.parameters())
    total = len(loader) // accum_steps * epochs
    warm = total // 10

    def shape(step):
        if step < warm:
            return step / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))

    sched = torch.optim.lr_scheduler.LambdaLR(opt, shape)
    for epoch in range(epochs):
        opt.zero_grad()
        for i, batch in enumerate(loader):
            (net(batch).loss / accum_steps).backward()
            if (i + 1) % accum_steps == 0:
                opt.step()
                sched.step()
                opt.zero_grad()
