# expect: ok
def update(model, optimizer, batch, max_chunk):
    optimizer.zero_grad()
    for chunk_size_frac, chunk in split_in_chunks(batch, max_chunk):
        loss = model(chunk)
        loss = loss * chunk_size_frac
        loss.backward()
    optimizer.step()
