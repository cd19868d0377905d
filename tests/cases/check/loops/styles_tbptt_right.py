# expect: ok
import torch


def train(model, data, criterion, optimizer, bptt, ntokens, clip):
    model.train()
    hidden = model.init_hidden(20)
    total_loss = 0.0
    for batch, i in enumerate(range(0, data.size(0) - 1, bptt)):
        x, y = get_batch(data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(x, hidden)
        loss = criterion(output, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        total_loss += loss.item()
        if batch % 200 == 0 and batch > 0:
            print(total_loss / 200)
            total_loss = 0
