"""A plain PyTorch loop, as a user would write it: train_script.py MICRO ACCUM [--ignore-accum] [--dump FILE] [--oom M]"""
import argparse
import sys

import torch

parser = argparse.ArgumentParser()
parser.add_argument("micro", type=int)
parser.add_argument("accum", type=int)
parser.add_argument("--ignore-accum", action="store_true")
parser.add_argument("--dump")
parser.add_argument("--oom", type=int, default=1 << 30)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--output_dir", default=".")
a = parser.parse_args()
if a.ignore_accum:
    a.accum = 1
if a.micro >= a.oom:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Embedding(100, 32), torch.nn.Flatten(), torch.nn.Linear(32 * 16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for step in range(a.steps):
    for _ in range(a.accum):
        ids = torch.randint(0, 100, (a.micro, 16))
        labels = ids.sum(dim=1) % 2
        loss = torch.nn.functional.cross_entropy(model(ids), labels) / a.accum
        loss.backward()
        losses.append(loss.item())
    optimizer.step()
    optimizer.zero_grad()
if a.dump:
    with open(a.dump, "w") as file:
        print(*(loss.hex() for loss in losses), file=file)
sys.exit(0)
