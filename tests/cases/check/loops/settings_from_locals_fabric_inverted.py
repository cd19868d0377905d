# expect: mistake no_sync_inverted
import lightning as L
import torch

size, micro_size = 32, 8
gradient_accumulation_steps = 0
settings = {name: value for name, value in locals().items() if isinstance(value, int)}


def main(fabric: L.Fabric, net, take):
    optimizer = torch.optim.AdamW(net.parameters())
    net, optimizer = fabric.setup(net, optimizer)
    for it in range(1000):
        n = settings["gradient_accumulation_steps"]
        for micro in range(n):
            last = micro == n - 1
            with fabric.no_backward_sync(net, enabled=last):
                x, y = take()
                fabric.backward(torch.nn.functional.mse_loss(net(x), y) / n)
        optimizer.step()
        optimizer.zero_grad()
