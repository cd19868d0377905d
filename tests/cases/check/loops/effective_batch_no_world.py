# expect: mistake world_size_effective_batch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def setup(args, model):
    dist.init_process_group("nccl")
    args.accumulation_steps = args.global_batch_size // args.micro_batch_size
    return DDP(model)

def train(args, model, loader, optimizer):
    model = setup(args, model)
    for i, batch in enumerate(loader):
        (model(**batch).loss / args.accumulation_steps).backward()
        if (i + 1) % args.accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
