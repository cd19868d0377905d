# expect: ok
def forward_backward(model, batches, criterion, optimizer=None, do_zero_grad=True):
    for x, y in batches:
        if do_zero_grad:
            optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
