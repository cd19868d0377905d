# expect: ok
for update in range(updates):
    for micro in range(accumulate):
        model.require_backward_grad_sync = micro == accumulate - 1
        loss = model(next(batches)) / accumulate
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
