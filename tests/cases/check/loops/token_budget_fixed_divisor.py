# expect: mistake dynamic_micro_batch_divisor
import torch


def train(net, packs, cfg):
    optimizer = torch.optim.AdamW(net.parameters())
    tokens_in_window = 0
    for pack in packs:
        loss = net(pack).loss / cfg.accum_steps
        loss.backward()
        tokens_in_window += pack.size
        if tokens_in_window >= cfg.tokens_per_update:
            optimizer.step()
            optimizer.zero_grad()
            tokens_in_window = 0
