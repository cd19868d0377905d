# expect: ok
scaler = torch.cuda.amp.GradScaler()
for images, masks in train_loader:
    with torch.cuda.amp.autocast():
        loss = criterion(net(images), masks)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_value_(net.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()
