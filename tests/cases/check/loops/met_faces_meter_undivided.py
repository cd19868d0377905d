# expect: mistake no_division tail_leak
import torch
from torch.cuda.amp import autocast
from tqdm import tqdm


def train(opt, model, loader, loss_fn, optimizer, scaler, meter, writer, epoch, device):
    model.train()
    meter.reset()
    pbar = enumerate(loader)
    if opt.rank == 0:
        pbar = tqdm(pbar, total=len(loader), desc="train")
    for i, batch in pbar:
        batch = {k: v.to(device) for k, v in batch.items()}
        with autocast(enabled=opt.amp):
            output = model(batch["image"])
            loss, loss_dict = loss_fn(output, batch)
        scaler.scale(loss).backward()
        if (i + 1) % opt.accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
        if opt.rank == 0:
            n_iter = epoch * len(loader) + i
            meter.update(loss_dict)
            meter.to_writer(writer, "Train", n_iter)
            pbar.set_postfix_str(f"loss: {loss:.2f}, epoch: {epoch}")


def main(opt, model, loader, loss_fn, optimizer, meter, writer, device):
    scaler = torch.cuda.amp.GradScaler(enabled=opt.amp)
    for epoch in range(opt.start_epoch, opt.start_epoch + opt.epochs):
        train(opt, model, loader, loss_fn, optimizer, scaler, meter, writer, epoch, device)
