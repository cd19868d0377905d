# expect: note tail_dropped
for i, batch in enumerate(loader):
    loss = model(**batch).loss
    writer.add_scalar("loss", loss.item(), i)
    loss = loss / accum_steps
    loss.backward()
    if (i + 1) % accum_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
