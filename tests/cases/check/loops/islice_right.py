# expect: ok
from itertools import islice

def windows(loader, n):
    source = iter(loader)
    while True:
        group = list(islice(source, n))
        if not group:
            return
        yield group

def train(model, optimizer, loader, n_accumulate):
    for group in windows(loader, n_accumulate):
        for batch in group:
            loss = model(**batch).loss / len(group)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
