# expect: ok
def update(policy, optimizer, batch, n_chunks):
    losses = []
    for chunk in batch.chunk(n_chunks):
        losses.append(policy.loss(chunk))
    optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    optimizer.step()

for batch in loader:
    update(policy, optimizer, batch, 4)
