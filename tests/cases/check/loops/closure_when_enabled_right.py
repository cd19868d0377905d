# expect: ok
import torch


def craft(optimizer_class, loss_fn, x, y, rounds):
    adv = x.clone()
    opt = optimizer_class(params=[adv])
    for _ in range(rounds):
        def closure():
            if torch.is_grad_enabled():
                opt.zero_grad()
            loss = loss_fn(x, adv, y)
            if loss.requires_grad:
                loss.backward()
            return loss

        opt.step(closure)
    return adv
