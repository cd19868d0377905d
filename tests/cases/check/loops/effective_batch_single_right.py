# expect: note tail_dropped
micro_batch_size = 4
effective_batch_size = 32
accumulation_steps = effective_batch_size // micro_batch_size
for i, batch in enumerate(loader):
    (model(**batch).loss / accumulation_steps).backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
