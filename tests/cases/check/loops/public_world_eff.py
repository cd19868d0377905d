# expect: mistake world_size_effective_batch
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
target_batch_size = 512
micro_batch_size = 8
accumulation_steps = target_batch_size // micro_batch_size
loader = torch.utils.data.DataLoader(ds, batch_size=micro_batch_size, sampler=DistributedSampler(ds))
model = DDP(net.to(rank), device_ids=[rank])
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
opt.zero_grad()
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(x.to(rank)), y.to(rank))
    (loss / accumulation_steps).backward()
    if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
        opt.step()
        opt.zero_grad()
