# expect: ok
def fit(model, loader, optimizer, n_epochs, accum):
    for e in range(n_epochs):
        optimizer.zero_grad()
        acc_count = 0
        for batch in loader:
            loss = model.step(batch) / accum
            loss.backward()
            acc_count += 1
            if acc_count < accum:
                continue
            optimizer.step()
            optimizer.zero_grad()
            acc_count = 0
        if acc_count > 0:
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.mul_(accum / acc_count)
            optimizer.step()
            optimizer.zero_grad()
