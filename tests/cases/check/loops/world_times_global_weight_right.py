# expect: ok
import torch.distributed as dist


def train_one_epoch(model, iterator, optimizer, accum_grad):
    optimizer.zero_grad()
    for i, batch in enumerate(iterator, 1):
        loss, stats, weight = model(**batch)
        stats, weight = recursive_average(stats, weight, True)
        loss = loss / weight * dist.get_world_size()
        loss = loss / accum_grad
        loss.backward()
        if i % accum_grad == 0:
            optimizer.step()
            optimizer.zero_grad()
    optimizer.zero_grad()
