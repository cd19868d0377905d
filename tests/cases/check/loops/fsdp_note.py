# expect: note fsdp_no_sync_memory
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(model)
for i, batch in enumerate(loader):
    last = (i + 1) % accumulate == 0
    with (nullcontext() if last else model.no_sync()):
        (model(batch).loss / accumulate).backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
