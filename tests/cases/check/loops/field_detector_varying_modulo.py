# expect: mistake varying_accum_modulo off_by_one_boundary
import numpy as np
import torch
from torch.cuda import amp
from tqdm import tqdm


def train(hyp, opt, device, model, dataloader, ema, compute_loss, lf):
    nbs = 64
    total_batch_size = opt.total_batch_size
    accumulate = max(round(nbs / total_batch_size), 1)
    hyp["weight_decay"] *= total_batch_size * accumulate / nbs
    optimizer = torch.optim.SGD(model.parameters(), lr=hyp["lr0"], momentum=hyp["momentum"], nesterov=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lf)
    nb = len(dataloader)
    nw = max(round(hyp["warmup_epochs"] * nb), 1000)
    scaler = amp.GradScaler(enabled=device.type != "cpu")
    for epoch in range(opt.epochs):
        model.train()
        mloss = torch.zeros(4, device=device)
        pbar = tqdm(enumerate(dataloader), total=nb)
        optimizer.zero_grad()
        for i, (imgs, targets, paths, _) in pbar:
            ni = i + nb * epoch
            imgs = imgs.to(device, non_blocking=True).float() / 255.0
            if ni <= nw:
                xi = [0, nw]
                accumulate = max(1, np.interp(ni, xi, [1, nbs / total_batch_size]).round())
                for j, x in enumerate(optimizer.param_groups):
                    x["lr"] = np.interp(ni, xi, [0.1 if j == 2 else 0.0, x["initial_lr"] * lf(epoch)])
            with amp.autocast():
                pred = model(imgs)
                loss, loss_items = compute_loss(pred, targets.to(device))
            scaler.scale(loss).backward()
            if ni % accumulate == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                if ema:
                    ema.update(model)
            mloss = (mloss * i + loss_items) / (i + 1)
        scheduler.step()
