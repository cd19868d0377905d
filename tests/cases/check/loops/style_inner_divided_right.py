# expect: ok
for step in range(cfg.max_steps):
    opt.zero_grad()
    total = 0.0
    for _ in range(cfg.grad_accum_steps):
        batch = next(train_iter)
        loss = model(batch).loss
        loss = loss / cfg.grad_accum_steps
        loss.backward()
        total += loss.item()
    opt.step()
    print(step, total)
