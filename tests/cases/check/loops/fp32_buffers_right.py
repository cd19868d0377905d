# expect: ok
buffers = [torch.zeros_like(p, dtype=torch.float32) for p in model.parameters()]
for window in windows:
    for micro in window:
        loss = model(**micro).loss / len(window)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        for buffer, grad in zip(buffers, grads):
            buffer.add_(grad)
    for p, buffer in zip(model.parameters(), buffers):
        p.grad = buffer.to(p.dtype)
        buffer.zero_()
    optimizer.step()
