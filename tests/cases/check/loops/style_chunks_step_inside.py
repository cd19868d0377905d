# expect: mistake apply_inside_loop
def train_on_batch(big_batch, n_micro):
    optimizer.zero_grad()
    for micro in torch.chunk(big_batch, n_micro):
        out = model(micro)
        loss = out.loss / n_micro
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
