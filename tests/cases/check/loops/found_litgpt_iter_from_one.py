# expect: ok
import time


def train(fabric, model, optimizer, scheduler, train_data, devices, max_iters=50000, batch_size=64, micro_batch_size=4):
    gradient_accumulation_iters = batch_size // micro_batch_size
    assert gradient_accumulation_iters > 0
    warmup_steps = 100
    step_count = 0
    optimizer.zero_grad()
    for iter_num in range(1, max_iters + 1):
        if step_count <= warmup_steps:
            lr = 3e-4 * step_count / warmup_steps
            for param_group in optimizer.param_groups:
                param_group["lr"] = lr
        iter_t0 = time.perf_counter()
        input_ids, targets = get_batch(fabric, train_data)
        is_accumulating = iter_num % gradient_accumulation_iters != 0
        with fabric.no_backward_sync(model, enabled=is_accumulating):
            logits = model(input_ids, lm_head_chunk_size=128)
            logits[-1] = logits[-1][..., :-1, :]
            loss = chunked_cross_entropy(logits, targets[..., 1:])
            fabric.backward(loss / gradient_accumulation_iters)
        if not is_accumulating:
            optimizer.step()
            optimizer.zero_grad()
            if step_count > warmup_steps:
                scheduler.step()
            step_count += 1
        if not is_accumulating and step_count % 10 == 0:
            fabric.print(f"iter {iter_num} step {step_count}: loss {loss.item():.4f}, {time.perf_counter() - iter_t0:.2f}s")
