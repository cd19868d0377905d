# expect: mistake no_sync_inverted
from lightning.fabric import Fabric


def fit(fabric: Fabric, model, optimizer, scheduler, data, gradient_accumulation_iters, max_iters):
    for iter_num, (x, y) in enumerate(data, start=1):
        if iter_num > max_iters:
            break
        is_accumulating = iter_num % gradient_accumulation_iters != 0
        with fabric.no_backward_sync(model, enabled=not is_accumulating):
            loss = model(x, labels=y).loss
            fabric.backward(loss / gradient_accumulation_iters)
        if not is_accumulating:
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
