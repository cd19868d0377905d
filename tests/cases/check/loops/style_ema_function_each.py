# expect: mistake ema_per_micro_step
def update_ema(ema, model, decay):
    for e, p in zip(ema.parameters(), model.parameters()):
        e.data.mul_(decay).add_(p.data, alpha=1 - decay)

def train(model, ema, loader, opt, accum):
    for i, b in enumerate(loader):
        (model(b) / accum).backward()
        if (i + 1) % accum == 0 or i + 1 == len(loader):
            opt.step()
            opt.zero_grad()
        update_ema(ema, model, 0.999)
