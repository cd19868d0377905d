# expect: mistake step_in_backward_hook
import torch


def attach(model, lr):
    optimizers = {p: torch.optim.AdamW([p], lr=lr, foreach=False) for p in model.parameters()}

    def hook(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)


def train(model, loader, gradient_accumulation_steps):
    attach(model, 1e-5)
    for step, batch in enumerate(loader):
        loss = model(**batch).loss / gradient_accumulation_steps
        loss.backward()
        if (step + 1) % gradient_accumulation_steps == 0:
            print(step, loss.item() * gradient_accumulation_steps)
