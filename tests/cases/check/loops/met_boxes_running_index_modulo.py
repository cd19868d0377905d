# expect: mistake no_division off_by_one_boundary
import numpy as np
import torch
from torch.cuda import amp
from tqdm import tqdm


def train(hyp, opt, model, ema, dataloader, optimizer, scheduler, compute_loss, device, epochs):
    nb = len(dataloader)
    nw = max(round(hyp["warmup_epochs"] * nb), 1000)
    scaler = amp.GradScaler(enabled=device.type != "cpu")
    for epoch in range(epochs):
        model.train()
        mloss = torch.zeros(4, device=device)
        optimizer.zero_grad()
        pbar = tqdm(enumerate(dataloader), total=nb)
        for i, (imgs, targets, paths, _) in pbar:
            ni = i + nb * epoch
            imgs = imgs.to(device, non_blocking=True).float() / 255.0
            if ni <= nw:
                for j, x in enumerate(optimizer.param_groups):
                    x["lr"] = np.interp(ni, [0, nw], [0.1 if j == 2 else 0.0, x["initial_lr"]])
            with amp.autocast(enabled=device.type != "cpu"):
                pred = model(imgs)
                loss, loss_items = compute_loss(pred, targets, model, hyp)
            scaler.scale(loss).backward()
            if ni % opt.accumulate == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                if ema:
                    ema.update(model)
            mloss = (mloss * i + loss_items) / (i + 1)
            pbar.set_description(f"epoch {epoch}/{epochs - 1} box {mloss[0]:.4f} obj {mloss[1]:.4f}")
        scheduler.step()
