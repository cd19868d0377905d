# expect: ok
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_map


def train(model, optimizer, dataset, args):
    loss_value_and_grad = nn.value_and_grad(model, default_loss)
    grad_accum_steps = args.grad_accumulation_steps
    accumulated = None
    for it, batch in zip(range(1, args.iters + 1), iterate_batches(dataset, args.batch_size)):
        (loss, toks), grad = loss_value_and_grad(model, *batch)
        if accumulated is not None:
            grad = tree_map(lambda x, y: x + y, grad, accumulated)
        if it % grad_accum_steps == 0:
            grad = tree_map(lambda x: x / grad_accum_steps, grad)
            optimizer.update(model, grad)
            accumulated = None
        else:
            accumulated = grad
        mx.eval(model.parameters(), optimizer.state, loss)
