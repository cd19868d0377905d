# expect: ok
import torch


def run_stage(cfg, model, optimizer, scheduler, train_dl, start_step, accumulation, device):
    train_iter = iter(train_dl)
    first_micro = start_step * accumulation + 1
    final_micro = cfg.stage2_steps * accumulation
    optimizer.zero_grad(set_to_none=True)
    for micro_step in range(first_micro, final_micro + 1):
        step = (micro_step - 1) // accumulation + 1
        micro_in_group = (micro_step - 1) % accumulation
        accumulation_boundary = (micro_in_group == accumulation - 1)
        try:
            batch = next(train_iter)
        except StopIteration:
            train_iter = iter(train_dl)
            batch = next(train_iter)
        out = model(batch["wav"].to(device))
        loss = out["recon"] + cfg.kl_w * out["kl"]
        (loss / accumulation).backward()
        if not accumulation_boundary:
            continue
        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        if step % cfg.log_every == 0:
            print(f"[stage 2] {step} loss={loss.item():.4f}")
