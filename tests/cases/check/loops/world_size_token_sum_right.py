# expect: ok
import torch.distributed as dist

def window_step(model, optimizer, micro_batches):
    total_tokens = sum((m["labels"] != -100).sum() for m in micro_batches)
    dist.all_reduce(total_tokens)
    for micro in micro_batches:
        loss = model(**micro, reduction="sum").loss_sum
        (loss * dist.get_world_size() / total_tokens).backward()
    optimizer.step()
    optimizer.zero_grad()
