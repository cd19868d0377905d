# expect: mistake divide_after_backward
for step in range(cfg.max_steps):
    opt.zero_grad()
    total = 0.0
    for _ in range(cfg.grad_accum_steps):
        batch = next(train_iter)
        loss = model(batch).loss
        loss.backward()
        loss = loss / cfg.grad_accum_steps
        total += loss.item()
    opt.step()
    print(step, total)
