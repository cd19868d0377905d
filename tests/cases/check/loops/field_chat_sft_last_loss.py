# expect: ok
import torch
import torch.distributed as dist

device_batch_size = 4
num_epochs = 1
target_examples_per_step = 32

ddp, ddp_rank, ddp_local_rank, ddp_world_size = get_dist_info()
model, tokenizer, meta = load_model("base", device, phase="train")
examples_per_step = device_batch_size * ddp_world_size
assert target_examples_per_step % examples_per_step == 0
grad_accum_steps = target_examples_per_step // examples_per_step
num_iterations = (len(train_ds) // target_examples_per_step) * num_epochs
train_loader = sft_data_generator(train_ds, batch_size=device_batch_size)
optimizers = model.setup_optimizers(unembedding_lr=0.004, embedding_lr=0.2, matrix_lr=0.02, weight_decay=0.0)


def get_lr_multiplier(it):
    return 1.0 - it / num_iterations


step = 0
train_iter = iter(train_loader)
for step in range(num_iterations):
    last_step = step == num_iterations - 1
    model.train()
    num_tokens = torch.tensor(0, device=device)
    for micro_step in range(grad_accum_steps):
        train_inputs, train_targets = next(train_iter)
        loss = model(train_inputs, train_targets)
        train_loss = loss.detach()
        loss = loss / grad_accum_steps
        loss.backward()
        num_tokens += (train_targets >= 0).sum()
    if ddp:
        dist.all_reduce(num_tokens, op=dist.ReduceOp.SUM)
    lrm = get_lr_multiplier(step)
    for opt in optimizers:
        for group in opt.param_groups:
            group["lr"] = group["initial_lr"] * lrm
    for opt in optimizers:
        opt.step()
    model.zero_grad(set_to_none=True)
    print(f"Step {step:05d}/{num_iterations:05d} | Training loss: {train_loss.item():.6f} | lrm: {lrm:.6f} | num_tokens: {num_tokens.item():,}")
