# expect: ok
import torch


def train(net, packs, cfg):
    optimizer = torch.optim.AdamW(net.parameters())
    tokens_in_window = 0
    count = 0
    for pack in packs:
        net(pack).loss.backward()
        tokens_in_window += pack.size
        count += 1
        if tokens_in_window >= cfg.tokens_per_update:
            for p in net.parameters():
                p.grad /= count
            optimizer.step()
            optimizer.zero_grad()
            tokens_in_window = 0
            count = 0
