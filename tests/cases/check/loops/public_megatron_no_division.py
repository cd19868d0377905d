# expect: mistake no_division
import torch


def forward_step_func(batch, model):
    logits = model(batch["tokens"])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())


def forward_backward(data_iterator, model, num_microbatches):
    reports = []
    for i in range(num_microbatches):
        batch = next(data_iterator)
        loss = forward_step_func(batch, model)
        loss.backward()
        reports.append(loss.detach() / num_microbatches)
    return torch.stack(reports).sum()


def train_step(model, optimizer, lr_scheduler, data_iterator, num_microbatches, clip_grad):
    optimizer.zero_grad(set_to_none=True)
    lm_loss = forward_backward(data_iterator, model, num_microbatches)
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip_grad)
    optimizer.step()
    lr_scheduler.step()
    return lm_loss, grad_norm


def pretrain(model, optimizer, lr_scheduler, data_iterator, args):
    num_microbatches = args.global_batch_size // (args.micro_batch_size * args.data_parallel_size)
    for iteration in range(args.train_iters):
        loss, norm = train_step(model, optimizer, lr_scheduler, data_iterator, num_microbatches, args.clip_grad)
        if iteration % 10 == 0:
            print(iteration, loss.item(), norm.item())
