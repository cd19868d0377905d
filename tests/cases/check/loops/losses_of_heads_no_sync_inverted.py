# expect: mistake no_sync_inverted
from contextlib import nullcontext


def train_step(accelerator, model, optimizer, batches, grad_accum_every):
    optimizer.zero_grad()
    for i in range(grad_accum_every):
        is_last = i == grad_accum_every - 1
        context = accelerator.no_sync(model) if is_last else nullcontext()
        with context:
            losses = model(next(batches))
            for name, head_loss in losses:
                accelerator.backward(head_loss / grad_accum_every, retain_graph=True)
    optimizer.step()
