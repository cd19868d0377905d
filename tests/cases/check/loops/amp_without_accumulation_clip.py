# expect: mistake clip_before_unscale
scaler = torch.cuda.amp.GradScaler()
for images, masks in train_loader:
    with torch.cuda.amp.autocast():
        loss = criterion(net(images), masks)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()
