# expect: note tail_dropped
for i, batch in enumerate(loader):
    loss = criterion(model(batch.x), batch.y)
    (loss / accumulation_steps).backward()
    epoch_loss += loss.item() / accumulation_steps
    if (i + 1) % accumulation_steps == 0:
        print("window loss", epoch_loss)
        epoch_loss = 0.0
        optimizer.step()
        optimizer.zero_grad()
