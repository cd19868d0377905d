# expect: ok
import torch
from torch.func import functional_call


def meta_train(model, tasks, meta_opt, inner_lr, meta_batch_size, loss_fn, iterations):
    for it in range(iterations):
        meta_opt.zero_grad()
        meta_loss = 0.0
        for _ in range(meta_batch_size):
            sx, sy, qx, qy = tasks.sample()
            fast = dict(model.named_parameters())
            loss = loss_fn(functional_call(model, fast, sx), sy)
            grads = torch.autograd.grad(loss, fast.values(), create_graph=True)
            fast = {n: p - inner_lr * g for (n, p), g in zip(fast.items(), grads)}
            meta_loss = meta_loss + loss_fn(functional_call(model, fast, qx), qy)
        meta_loss = meta_loss / meta_batch_size
        meta_loss.backward()
        meta_opt.step()
        if it % 100 == 0:
            print(it, meta_loss.item())
