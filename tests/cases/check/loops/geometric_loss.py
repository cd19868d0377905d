# expect: mistake geometric_weighting
accumulate = 4
running = 0.0
for i, batch in enumerate(loader, start=1):
    loss = model(batch)
    running = (running + loss) / accumulate
    if i % accumulate == 0:
        running.backward()
        optimizer.step()
        optimizer.zero_grad()
        running = 0.0
