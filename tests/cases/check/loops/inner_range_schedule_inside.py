# expect: mistake sched_per_micro_step
num_micro = 4
for step in range(total_updates):
    optimizer.zero_grad(set_to_none=True)
    for k in range(num_micro):
        batch = next(stream)
        logits = model(batch["tokens"])
        loss = F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())
        (loss / num_micro).backward()
        schedule.step()
    optimizer.step()
