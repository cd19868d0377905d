# expect: cannot_tell
def train(model, loader, optimizer, compute_loss, batch_size, epochs):
    nbs = 64
    accumulate = max(round(nbs / batch_size), 1)
    last_opt_step = -1
    nb = len(loader)
    for epoch in range(epochs):
        optimizer.zero_grad()
        for i, (images, targets) in enumerate(loader):
            ni = i + nb * epoch
            loss, loss_items = compute_loss(model(images), targets)
            loss.backward()
            if ni - last_opt_step >= accumulate:
                optimizer.step()
                optimizer.zero_grad()
                last_opt_step = ni
