# expect: mistake no_division
def train_step(model, optimizer, batch, micro_batch_size):
    inputs, targets = batch["input_ids"], batch["labels"]
    optimizer.zero_grad()
    pieces = list(zip(inputs.split(micro_batch_size), targets.split(micro_batch_size)))
    total = 0.0
    for x, y in pieces:
        loss = model(x, labels=y).loss
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total


def train(model, optimizer, loader, micro_batch_size):
    for batch in loader:
        value = train_step(model, optimizer, batch, micro_batch_size)
        print(f"loss {value:.3f}")
