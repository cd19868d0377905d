# expect: ok
def chunks_of(batch, size):
    batch_size = batch.shape[0]
    for chunk in batch.split(size):
        chunk_frac = len(chunk) / batch_size
        yield chunk_frac, chunk


def train_step(accelerator, model, optimizer, batch, size):
    for chunk_frac, chunk in chunks_of(batch, size):
        loss = model(chunk) * chunk_frac
        accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
