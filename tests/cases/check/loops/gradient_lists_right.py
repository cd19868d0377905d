# expect: ok
accum_steps = 4
total = [torch.zeros_like(p) for p in params]
for i, batch in enumerate(loader):
    loss = model(batch)
    grads = torch.autograd.grad(loss, params)
    total = [t + g / accum_steps for t, g in zip(total, grads)]
    if (i + 1) % accum_steps == 0:
        for p, t in zip(params, total):
            p.grad = t
        optimizer.step()
        total = [torch.zeros_like(p) for p in params]
