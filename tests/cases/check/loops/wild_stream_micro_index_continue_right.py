# expect: ok
import contextlib
import itertools

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def pretrain(config, net, base_dataset, optimizer, scheduler, loss_fn, progress, device, ddp_enabled, world):
    model = DDP(net) if ddp_enabled else net
    micro_steps = config.MACRO_BATCH // (config.BATCH_SIZE * world)
    current_micro_step = 0
    stop_requested = False
    for current_epoch in itertools.count(0):
        dataset_epoch = base_dataset.shuffle(buffer_size=1000, seed=42 + current_epoch)
        loader = DataLoader(dataset_epoch, batch_size=config.BATCH_SIZE)
        for current_step, batch in enumerate(loader):
            ids = batch["input_ids"]
            inputs, targets = ids[:, :-1].to(device), ids[:, 1:].to(device)
            if current_micro_step == 0:
                optimizer.zero_grad()
                micro_loss_total = 0.0
            with torch.autocast("cuda", dtype=torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext():
                logits = model(inputs)
                loss = loss_fn(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))
                loss /= micro_steps
            with model.no_sync() if ddp_enabled and current_micro_step != micro_steps - 1 else contextlib.nullcontext():
                loss.backward()
            micro_loss_total += loss.item()
            if current_micro_step != micro_steps - 1:
                current_micro_step += 1
                continue
            logged_loss = micro_loss_total
            if ddp_enabled:
                total = torch.tensor(micro_loss_total, device=device)
                dist.all_reduce(total, op=dist.ReduceOp.SUM)
                logged_loss = total.item() / world
            progress.tick(logged_loss, optimizer.param_groups[0]["lr"])
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            stop_requested = progress.done()
            if stop_requested:
                break
            current_micro_step = 0
        if stop_requested:
            break
