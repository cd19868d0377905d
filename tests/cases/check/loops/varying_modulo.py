# expect: mistake varying_accum_modulo
accumulate = 1
seen = 0
last_update = 0
optimizer.zero_grad()
for epoch in range(epochs):
    for batch in loader:
        seen += 1
        if seen <= warmup:
            accumulate = max(1, round(1 + (target - 1) * seen / warmup))
        loss = model(batch) / accumulate
        loss.backward()
        if seen % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            last_update = seen
