# expect: ok
def closure():
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    return loss

for x, y in loader:
    optimizer.step(closure)
