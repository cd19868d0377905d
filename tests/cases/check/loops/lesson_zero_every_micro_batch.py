# expect: mistake zero_grad_in_window
accum = 8
optimizer.zero_grad()
for step, batch in enumerate(loader, start=1):
    inputs, labels = batch
    optimizer.zero_grad()
    with torch.cuda.amp.autocast(enabled=use_amp):
        loss = model(inputs, labels)
        loss = loss / accum
    scaler.scale(loss).backward()
    if step % accum == 0:
        if clip_val is not None:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_val)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
