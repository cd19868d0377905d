# expect: mistake double_division
num_micro = 4
for step in range(total_updates):
    optimizer.zero_grad(set_to_none=True)
    for k in range(num_micro):
        batch = next(stream)
        logits = model(batch["tokens"])
        loss = F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())
        (loss / num_micro).backward()
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= num_micro
    optimizer.step()
    schedule.step()
