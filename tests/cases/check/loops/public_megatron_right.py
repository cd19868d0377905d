# expect: ok
import contextlib
from functools import partial

import torch


def loss_func(loss_mask, output):
    losses = output.float().view(-1)
    mask = loss_mask.view(-1).float()
    return torch.sum(losses * mask) / mask.sum()


def forward_step(iterator, model):
    batch = next(iterator)
    out = model(batch["tokens"], batch["position_ids"], labels=batch["labels"])
    return out, partial(loss_func, batch["loss_mask"])


def forward_backward_no_pipelining(data_iterator, model, num_microbatches, no_sync=contextlib.nullcontext):
    losses = []
    with no_sync():
        for _ in range(num_microbatches - 1):
            out, reduce = forward_step(data_iterator, model)
            loss = reduce(out) / num_microbatches
            loss.backward()
            losses.append(loss.detach())
    out, reduce = forward_step(data_iterator, model)
    loss = reduce(out) / num_microbatches
    loss.backward()
    losses.append(loss.detach())
    return sum(losses)


def train_step(data_iterator, model, optimizer, scheduler, args):
    model.zero_grad_buffer()
    optimizer.zero_grad()
    loss = forward_backward_no_pipelining(data_iterator, model, args.num_microbatches, model.no_sync)
    optimizer.step()
    scheduler.step(increment=args.num_microbatches * args.micro_batch_size * args.data_parallel_size)
    return loss


def train(model, optimizer, scheduler, data_iterator, args):
    iteration = 0
    while iteration < args.train_iters:
        loss = train_step(data_iterator, model, optimizer, scheduler, args)
        iteration += 1
        if iteration % args.log_interval == 0:
            print(f"iteration {iteration} | lm loss {loss.item():.4E}")
