# expect: mistake no_division
import os
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    rank = int(os.environ.get("RANK", "0"))
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    grad_accum_steps = 8 // world_size
    device = torch.device("cuda", rank)
    base_model = GPT().to(device).bfloat16()
    model = DDP(base_model, device_ids=[rank])
    optimizers = [Muon(base_model.matrix_params(), lr=0.02), torch.optim.Adam(base_model.embed_params(), lr=0.05)]
    train_loader = TokenLoader("data/train_*.bin", rank, world_size, device)
    for step in range(20000):
        for opt in optimizers:
            opt.zero_grad(set_to_none=True)
        train_loss = torch.zeros((), device=device)
        for micro_step in range(grad_accum_steps):
            model.require_backward_grad_sync = micro_step == grad_accum_steps - 1
            x, y = train_loader.next_batch(524288, 1024, grad_accum_steps)
            with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
                loss = model(x, y)
            train_loss += loss.detach() / grad_accum_steps
            loss.backward()
        for opt in optimizers:
            opt.step()
        if step % 200 == 0:
            print(f"step:{step} train_loss:{train_loss.item():.4f}")
