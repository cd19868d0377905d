# expect: ok
for epoch in range(epochs):
    accum_steps = 2 if epoch < 3 else 8
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        loss = model(batch).loss / accum_steps
        loss.backward()
        if (i + 1) % accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
