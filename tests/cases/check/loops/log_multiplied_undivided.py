# expect: mistake log_factor
for i, batch in enumerate(loader):
    loss = model(**batch).loss
    writer.add_scalar("loss", loss.item() * accum_steps, i)
    (loss / accum_steps).backward()
    if (i + 1) % accum_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
