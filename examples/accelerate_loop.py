"""A loop with Accelerate's accumulate().

    batchwright tune --effective-batch 64 -- python examples/accelerate_loop.py --batch_size {micro} --accum_steps {accum}
"""
import argparse

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--accum_steps", type=int, default=8)
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accum_steps)
features = torch.randn(640, 128)
loader = DataLoader(TensorDataset(features, (features.sum(1) > 0).long()), batch_size=args.batch_size, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
steps = 640 * args.epochs // (args.batch_size * args.accum_steps)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

for epoch in range(args.epochs):
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}")
