# expect: mistake varying_accum_modulo
step = 0
for epoch in range(epochs):
    accum_steps = 2 if epoch < 3 else 8
    for batch in loader:
        loss = model(batch).loss / accum_steps
        loss.backward()
        step += 1
        if step % accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
