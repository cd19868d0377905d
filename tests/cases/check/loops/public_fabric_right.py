# expect: ok
import lightning as L
import torch


def main(fabric: L.Fabric, cfg):
    model, optimizer = fabric.setup(make_model(cfg), make_optimizer(cfg))
    loader = fabric.setup_dataloaders(make_loader(cfg))
    it = iter(CycleIterator(loader))
    iters = 0
    steps = 0
    accumulated = cfg.global_batch_size // cfg.micro_batch_size // fabric.world_size
    while steps < cfg.max_steps:
        iters += 1
        batch = next(it)
        is_accumulating = iters % accumulated != 0
        with fabric.no_backward_sync(model, enabled=is_accumulating):
            logits = model(batch["x"])
            loss = chunked_cross_entropy(logits, batch["y"])
            fabric.backward(loss / accumulated)
        if not is_accumulating:
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
        if iters % 10 == 0:
            fabric.print(f"iter {iters} step {steps}: loss {loss.item():.4f}")
