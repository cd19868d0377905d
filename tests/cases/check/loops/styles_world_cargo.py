# expect: mistake world_size_rescale_cargo
import torch
import torch.distributed as dist


def train(model, loader, optimizer, accum_steps):
    world_size = dist.get_world_size()
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        loss = model(**batch).loss
        loss = loss * world_size / accum_steps
        loss.backward()
        if (i + 1) % accum_steps == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
