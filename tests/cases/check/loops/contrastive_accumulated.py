# expect: mistake not_equivalent_by_nature
for i, (anchors, positives) in enumerate(loader):
    a = encoder(anchors)
    b = encoder(positives)
    scores = a @ b.T / temperature
    labels = torch.arange(scores.size(0), device=scores.device)
    loss = F.cross_entropy(scores, labels) / accumulation_steps
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
