# expect: ok
for i, (anchors, positives) in enumerate(loader):
    a = encoder(anchors)
    b = encoder(positives)
    scores = a @ b.T / temperature
    labels = torch.arange(scores.size(0), device=scores.device)
    loss = F.cross_entropy(scores, labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
