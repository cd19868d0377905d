# expect: mistake clip_before_unscale
accum = 8
optimizer.zero_grad()
for step, batch in enumerate(loader, start=1):
    inputs, labels = batch
    with torch.cuda.amp.autocast(enabled=use_amp):
        loss = model(inputs, labels)
        loss = loss / accum
    scaler.scale(loss).backward()
    if step % accum == 0:
        if clip_val is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_val)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        optimizer.zero_grad()
