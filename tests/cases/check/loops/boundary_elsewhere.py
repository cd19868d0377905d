# expect: cannot_tell
from project.training import should_update

for i, batch in enumerate(loader):
    loss = model(batch).loss / gradient_accumulation_steps
    loss.backward()
    if should_update(i):
        optimizer.step()
        optimizer.zero_grad()
