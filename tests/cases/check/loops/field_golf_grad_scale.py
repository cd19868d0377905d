# expect: ok
import os
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    distributed = "RANK" in os.environ
    rank = int(os.environ.get("RANK", "0"))
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if 8 % world_size != 0:
        raise ValueError("WORLD_SIZE must divide 8")
    grad_accum_steps = 8 // world_size
    grad_scale = 1.0 / grad_accum_steps
    device = torch.device("cuda", rank)
    base_model = GPT().to(device).bfloat16()
    model = DDP(base_model, device_ids=[rank]) if distributed else base_model
    optimizer_muon = Muon(base_model.matrix_params(), lr=0.02)
    optimizer_tok = torch.optim.Adam(base_model.embed_params(), lr=0.05, fused=True)
    optimizers = [optimizer_tok, optimizer_muon]
    train_loader = TokenLoader("data/train_*.bin", rank, world_size, device)

    def zero_grad_all():
        for opt in optimizers:
            opt.zero_grad(set_to_none=True)

    step = 0
    while step < 20000:
        zero_grad_all()
        train_loss = torch.zeros((), device=device)
        for micro_step in range(grad_accum_steps):
            if distributed:
                model.require_backward_grad_sync = micro_step == grad_accum_steps - 1
            x, y = train_loader.next_batch(524288, 1024, grad_accum_steps)
            with torch.autocast(device_type="cuda", dtype=torch.bfloat16, enabled=True):
                loss = model(x, y)
            train_loss += loss.detach()
            (loss * grad_scale).backward()
        train_loss /= grad_accum_steps
        for opt in optimizers:
            for group in opt.param_groups:
                group["lr"] = group["base_lr"] * lr_mul(step)
        torch.nn.utils.clip_grad_norm_(base_model.parameters(), 1.0)
        for opt in optimizers:
            opt.step()
        zero_grad_all()
        step += 1
        if step % 200 == 0:
            print(f"step:{step} train_loss:{train_loss.item():.4f}")
