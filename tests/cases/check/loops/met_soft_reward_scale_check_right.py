# expect: ok
import torch

GRAD_ACCUM = 8
MICRO_BATCH = 4


def train(rank, ddp_model, my_items, collate, optimizer, scheduler, epochs, device):
    scaler = torch.amp.GradScaler("cuda")
    optimizer_updates = 0
    for epoch in range(epochs):
        ddp_model.train()
        optimizer.zero_grad(set_to_none=True)
        accum_step, epoch_loss, n_batches = 0, 0.0, 0
        for b_idx in range(0, len(my_items), MICRO_BATCH):
            batch = collate(my_items[b_idx:b_idx + MICRO_BATCH])
            with torch.autocast("cuda", dtype=torch.float16):
                logits, act = ddp_model(batch["ids"].to(device))
                target = batch["target"].to(device)
                loss_rl = policy_loss(logits, target)
                loss_ce = -(target * torch.log_softmax(logits, -1)).sum(-1).mean()
                loss = (loss_rl + 1.0 * loss_ce) / GRAD_ACCUM + 0.0 * act.sum()
            scaler.scale(loss).backward()
            accum_step += 1
            if accum_step % GRAD_ACCUM == 0 or (b_idx + MICRO_BATCH) >= len(my_items):
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(ddp_model.parameters(), 1.0)
                old_scale = scaler.get_scale()
                scaler.step(optimizer)
                scaler.update()
                if scaler.get_scale() >= old_scale:
                    scheduler.step()
                    optimizer_updates += 1
                optimizer.zero_grad(set_to_none=True)
            epoch_loss += loss.item() * GRAD_ACCUM
            n_batches += 1
            if rank == 0 and (n_batches % 50) == 0:
                print(f"epoch {epoch + 1} step {n_batches} loss {loss.item() * GRAD_ACCUM:.4f}")
        if rank == 0:
            print(f"epoch {epoch + 1} mean {epoch_loss / max(1, n_batches):.4f}")
