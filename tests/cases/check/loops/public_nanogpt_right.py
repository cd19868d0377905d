# expect: ok
import math
import os
import time

import torch
from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

gradient_accumulation_steps = 5 * 8
batch_size = 12
block_size = 1024
grad_clip = 1.0
max_iters = 600000
learning_rate = 6e-4

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend="nccl")
    ddp_world_size = int(os.environ["WORLD_SIZE"])
    assert gradient_accumulation_steps % ddp_world_size == 0
    gradient_accumulation_steps //= ddp_world_size

scaler = torch.cuda.amp.GradScaler(enabled=True)
optimizer = model.configure_optimizers(0.1, learning_rate, (0.9, 0.95), "cuda")
if ddp:
    model = DDP(model, device_ids=[int(os.environ["LOCAL_RANK"])])

X, Y = get_batch("train")
iter_num = 0
while True:
    lr = get_lr(iter_num)
    for group in optimizer.param_groups:
        group["lr"] = lr
    if iter_num % 2000 == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: val {losses['val']:.4f}")
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        with torch.amp.autocast("cuda", dtype=torch.float16):
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch("train")
        scaler.scale(loss).backward()
    if grad_clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if iter_num % 10 == 0:
        lossf = loss.item() * gradient_accumulation_steps
        print(f"iter {iter_num}: loss {lossf:.4f}")
    iter_num += 1
    if iter_num > max_iters:
        break
