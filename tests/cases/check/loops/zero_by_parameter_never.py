# expect: mistake missing_zero_grad
def forward_backward(model, batches, criterion, optimizer, accum_steps, clear_first=False):
    for i, (x, y) in enumerate(batches):
        if clear_first:
            optimizer.zero_grad()
        loss = criterion(model(x), y) / accum_steps
        loss.backward()
        if (i + 1) % accum_steps == 0:
            optimizer.step()
