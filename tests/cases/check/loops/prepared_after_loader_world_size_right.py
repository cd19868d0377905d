# expect: ok
import argparse
import math

from accelerate import Accelerator
from transformers import get_scheduler

from parts import build_net, build_loader, build_optimizer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--accumulation", type=int, default=4)
    p.add_argument("--train_epochs", type=int, default=3)
    args = p.parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    parts = build_net()
    net, optimizer, loader = accelerator.prepare(*parts, build_loader())
    updates = args.train_epochs * math.ceil(len(loader) / args.accumulation)
    scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=10, num_training_steps=updates)

    for epoch in range(args.train_epochs):
        for batch in loader:
            with accelerator.accumulate(net):
                loss = net(**batch).loss
                accelerator.backward(loss)
                optimizer.step()
                if accelerator.sync_gradients:
                    scheduler.step()
                optimizer.zero_grad()
