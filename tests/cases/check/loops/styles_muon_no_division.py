# expect: mistake no_division
import torch

optimizers = [torch.optim.AdamW(head_params, lr=3e-4), Muon(hidden_params, lr=0.02)]
grad_accum_steps = total_batch // (device_batch * world_size)
for step in range(num_iterations):
    for micro in range(grad_accum_steps):
        x, y = next(train_loader)
        loss = model(x, y)
        loss.backward()
    for opt in optimizers:
        opt.step()
    model.zero_grad(set_to_none=True)
