# expect: ok
import torch

from stream import top_up


def train(net, source, loss_of, updates, accum_steps):
    optimizer = torch.optim.AdamW(net.parameters())
    for update in range(updates):
        window = []
        top_up(window, source, accum_steps)
        for micro in window:
            (loss_of(net(micro), micro) / len(window)).backward()
        optimizer.step()
        optimizer.zero_grad()
