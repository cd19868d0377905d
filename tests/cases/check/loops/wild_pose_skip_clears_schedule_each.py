# expect: mistake sched_per_micro_step
import json

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR


def train(args, model, renderer, metric, geodesic, device):
    optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
    updates = args.n_epochs * (args.n_batches_per_epoch // args.accumulate_step)
    scheduler = CosineAnnealingLR(optimizer, T_max=updates)
    model.train()
    for epoch in range(args.n_epochs):
        losses = []
        optimizer.zero_grad(set_to_none=True)
        for batch_idx in range(args.n_batches_per_epoch):
            target_pose = renderer.random_pose(args.batch_size)
            with torch.no_grad():
                target_img = renderer(target_pose)
            pred_pose = model(target_img)
            loss = 1 - metric(renderer(pred_pose), target_img) + 1e-2 * geodesic(pred_pose, target_pose)
            loss_mean = loss.mean()
            if not torch.isfinite(loss_mean):
                print(json.dumps({"event": "skip", "batch": batch_idx}))
                optimizer.zero_grad(set_to_none=True)
                continue
            (loss_mean / args.accumulate_step).backward()
            if (batch_idx + 1) % args.accumulate_step == 0:
                adaptive_clip_grad_(model.parameters())
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            scheduler.step()
            losses.append(float(loss_mean.item()))
        print(json.dumps({"epoch": epoch, "loss": float(torch.tensor(losses).mean())}))
