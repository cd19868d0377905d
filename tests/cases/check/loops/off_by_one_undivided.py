# expect: mistake off_by_one_boundary no_division
def train(model, loader, optimizer, accum_steps, epochs):
    for epoch in range(epochs):
        optimizer.zero_grad()
        for step, batch in enumerate(loader):
            loss = model(batch)
            loss.backward()
            if step % accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
