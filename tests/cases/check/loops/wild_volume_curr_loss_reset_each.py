# expect: mistake log_factor tail_leak
import numpy as np
import torch
from monai.losses import DiceLoss
from tqdm import tqdm


def train(args, model, train_loader, optimizer, scalar):
    print("Epoch starts")
    model.train()
    epoch_loss, epoch_iou = [], []
    pbar = tqdm(enumerate(train_loader), total=len(train_loader))
    curr_step = 0
    curr_iou = 0
    for batch_idx, (before, after, label) in pbar:
        before, after, label = before.to(args.device), after.to(args.device), label.to(args.device)
        curr_loss = 0
        with torch.cuda.amp.autocast_mode.autocast():
            hm1 = model(torch.cat([before, after], dim=1))
            hm2 = model(torch.cat([after, before], dim=1))
            lhf1 = DiceLoss(sigmoid=True)(hm1, label)
            lhf2 = DiceLoss(sigmoid=True)(hm2, label)
            lhh = DiceLoss()(torch.sigmoid(hm1), torch.sigmoid(hm2))
            loss = (lhf1 + lhf2 + lhh) / args.virtual_batch_size
            scalar.scale(loss).backward()
            curr_loss += loss.item()
            curr_step += 1
            curr_iou += 1 - DiceLoss(sigmoid=True)(hm1, label).item()
            if curr_step % args.virtual_batch_size == 0:
                scalar.step(optimizer)
                scalar.update()
                model.zero_grad(set_to_none=True)
                epoch_loss.append(curr_loss)
                epoch_iou.append(curr_iou)
                curr_loss, curr_step, curr_iou = 0, 0, 0
            pbar.set_description("%10.4g %10.4g" % (np.mean(epoch_loss), np.mean(epoch_iou)))
    return np.mean(epoch_loss)


def run(args, model, loader, optimizer):
    scalar = torch.cuda.amp.GradScaler()
    for epoch in range(args.epochs):
        train(args, model, loader, optimizer, scalar)
