# expect: mistake no_division
import time

import torch


def train(args, model, gaussian_diffusion, loader, optimizer):
    scaler = torch.cuda.amp.GradScaler()
    len_data = len(loader)
    for epoch in range(args.epoch):
        model.train()
        started = time.time()
        for step, (images, labels) in enumerate(loader):
            with torch.cuda.amp.autocast():
                images = images.to(args.device, non_blocking=True)
                labels = labels.to(args.device, non_blocking=True)
                t = torch.randint(0, args.timestep, (images.shape[0],), device=args.device).long()
                loss = gaussian_diffusion.train_losses(model, images, t, labels)
                if (step + 1) % max(len_data // 10, 1) == 0 or (step + 1) == len_data:
                    print("Epoch{}/{}  Step{}/{}  Loss {:.4f}  Time {:.2f}".format(
                        epoch + 1, args.epoch, step + 1, len_data, loss.item(), time.time() - started))
                    started = time.time()
                scaler.scale(loss).backward()
                if (step + 1) % args.accumulate_step == 0 or step == len_data - 1:
                    scaler.step(optimizer)
                    scaler.update()
                    optimizer.zero_grad(set_to_none=True)
