# expect: mistake no_sync_inverted
from lightning.fabric import Fabric

fabric = Fabric(devices=4)
model, optimizer = fabric.setup(model, optimizer)
for i, batch in enumerate(loader):
    accumulating = (i + 1) % accumulate != 0
    with fabric.no_backward_sync(model, enabled=not accumulating):
        loss = model(batch).loss
        fabric.backward(loss / accumulate)
    if not accumulating:
        optimizer.step()
        optimizer.zero_grad()
