# expect: mistake off_by_one_boundary
step = 0
while step < max_steps:
    for batch in loader:
        loss = model(**batch).loss
        (loss / grad_accum_steps).backward()
        if step % grad_accum_steps == 0 and step > 0:
            optimizer.step()
            optimizer.zero_grad()
        step += 1
