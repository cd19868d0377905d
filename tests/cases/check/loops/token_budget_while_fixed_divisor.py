# expect: mistake dynamic_micro_batch_divisor
import torch


def train(net, next_pack, updates, budget, grad_accum):
    opt = torch.optim.AdamW(net.parameters())
    for update in range(updates):
        n_tokens = 0
        opt.zero_grad()
        while n_tokens < budget:
            pack = next_pack()
            loss = net(pack).mean()
            (loss / grad_accum).backward()
            n_tokens += pack.count
        n_tokens = 0
        opt.step()
