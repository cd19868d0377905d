# expect: mistake clip_per_micro_step
for i, batch in enumerate(loader):
    loss = model(batch) / accum_iter
    loss.backward()
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if (i + 1) % accum_iter == 0:
        optimizer.step()
        optimizer.zero_grad()
