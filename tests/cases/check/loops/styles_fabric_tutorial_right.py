# expect: ok
import lightning as L
import torch

fabric = L.Fabric(accelerator="auto", devices=4, strategy="ddp")
fabric.launch()
model = fabric.setup(net)
optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=1e-4))
loader = fabric.setup_dataloaders(data)
for iteration, batch in enumerate(loader):
    is_accumulating = iteration % 8 != 7
    with fabric.no_backward_sync(model, enabled=is_accumulating):
        loss = torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"])
        fabric.backward(loss / 8)
    if not is_accumulating:
        optimizer.step()
        optimizer.zero_grad()
