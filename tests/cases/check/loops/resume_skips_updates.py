# expect: mistake resume_units
import torch
from accelerate import Accelerator


def main(args, net, loader, optimizer):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    updates_per_epoch = -(-len(loader) // args.gradient_accumulation_steps)
    done = 0
    skip = 0
    if args.resume:
        done = int(args.resume.split("-")[-1])
        skip = done % updates_per_epoch
    for epoch in range(args.epochs):
        for index, batch in enumerate(loader):
            if epoch == 0 and index < skip:
                continue
            with accelerator.accumulate(net):
                accelerator.backward(net(**batch).loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                done += 1
