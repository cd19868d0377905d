"""Data-parallel training in two processes, started by torchrun; the gradient is reduced once a window (no_sync).

    batchwright tune --effective-batch 64 --devices 2 -- torchrun --nproc_per_node 2 examples/torchrun_ddp.py \
        --batch_size {micro} --accum_steps {accum}
"""
import argparse
import contextlib

import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--accum_steps", type=int, default=4)
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()

distributed.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
features = torch.randn(640, 128)
data = TensorDataset(features, (features.sum(1) > 0).long())
sampler = DistributedSampler(data, shuffle=True, seed=0)
loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for i, (inputs, labels) in enumerate(loader, start=1):
        last = i % args.accum_steps == 0 or i == len(loader)
        with contextlib.nullcontext() if last else model.no_sync():
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            (loss / args.accum_steps).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
distributed.destroy_process_group()
