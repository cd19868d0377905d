# expect: mistake world_size_rescale_cargo
import torch.distributed as dist

accumulation_steps = 4
for step, batch in enumerate(loader):
    loss = model(**batch).loss * dist.get_world_size() / accumulation_steps
    loss.backward()
    if (step + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
