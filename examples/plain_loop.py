"""A plain PyTorch loop with gradient accumulation: a small text classifier on random tokens.

    batchwright tune   --effective-batch 64 -- python examples/plain_loop.py --batch_size {micro} --accum_steps {accum}
    batchwright verify --effective-batch 64 -- python examples/plain_loop.py --batch_size {micro} --accum_steps {accum}
"""
import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--accum_steps", type=int, default=8)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

torch.manual_seed(args.seed)
tokens = torch.randint(1, 1000, (640, 32))
data = TensorDataset(tokens, (tokens.sum(1) % 2))
loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)
model = torch.nn.Sequential(torch.nn.Embedding(1000, 64), torch.nn.Flatten(), torch.nn.Linear(64 * 32, 256),
                            torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(args.epochs):
    for i, (tokens, labels) in enumerate(loader, start=1):
        loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        (loss / args.accum_steps).backward()
        if i % args.accum_steps == 0 or i == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}")
