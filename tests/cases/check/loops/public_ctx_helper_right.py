# expect: ok
import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@contextlib.contextmanager
def maybe_sync(ddp_model, sync):
    if sync:
        yield
    else:
        with ddp_model.no_sync():
            yield


def run(model, loader, optimizer, lr_scheduler, n_accum, device):
    ddp = DDP(model.to(device), device_ids=[device])
    optimizer.zero_grad(set_to_none=True)
    for step, batch in enumerate(loader, 1):
        update = step % n_accum == 0 or step == len(loader)
        with maybe_sync(ddp, update):
            out = ddp(**{k: v.to(device) for k, v in batch.items()})
            (out.loss / n_accum).backward()
        if update:
            torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad(set_to_none=True)
