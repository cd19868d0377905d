# expect: cannot_tell
def train(model, batches, optimizer, accum_steps, scale):
    for parameter in model.parameters():
        parameter.register_hook(lambda grad: scale(grad))
    optimizer.zero_grad()
    for i, batch in enumerate(batches):
        loss = model(batch)
        loss.backward()
        if (i + 1) % accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
