# expect: cannot_tell
from project.losses import window_loss

for i, batch in enumerate(loader):
    loss = window_loss(model(batch), batch["labels"], accumulation_steps)
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
