# expect: mistake divide_after_backward
for i, batch in enumerate(loader):
    loss = criterion(model(batch.x), batch.y)
    loss.backward()
    loss = loss / accumulation_steps
    epoch_loss += loss.item()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
