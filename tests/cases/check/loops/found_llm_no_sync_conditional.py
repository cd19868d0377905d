# expect: ok
import contextlib
import torch
import torch.distributed as dist


def train(cfg, model, data_iter, optimizer, scheduler, device, distributed, world_size, amp_dtype):
    step = 0
    tokens_since_log = 0
    while step < cfg.total_steps:
        optimizer.zero_grad(set_to_none=True)
        loss_accum = 0.0
        for micro_step in range(cfg.grad_accum_steps):
            input_ids, labels = next(data_iter)
            input_ids, labels = input_ids.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            is_last_micro_step = micro_step == cfg.grad_accum_steps - 1
            sync_ctx = (
                model.no_sync()
                if distributed and not is_last_micro_step
                else contextlib.nullcontext()
            )
            with sync_ctx:
                with torch.autocast(device.type, dtype=amp_dtype):
                    loss = model(input_ids=input_ids, labels=labels).loss
                (loss / cfg.grad_accum_steps).backward()
            loss_accum += loss.item() / cfg.grad_accum_steps
            tokens_since_log += input_ids.numel() * world_size
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
        optimizer.step()
        scheduler.step()
        step += 1
        if step % cfg.log_interval == 0:
            print(f"step {step} loss {loss_accum:.4f} grad {grad_norm:.3f}")
