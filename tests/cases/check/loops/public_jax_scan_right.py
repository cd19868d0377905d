# expect: ok
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


def loss_fn(params, apply_fn, batch):
    logits = apply_fn({"params": params}, batch["x"])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()


@jax.jit
def train_step(state: TrainState, batches):
    """`batches` has a leading axis of micro-batches."""
    num_micro = batches["x"].shape[0]

    def body(carry, micro):
        loss, grads = jax.value_and_grad(loss_fn)(state.params, state.apply_fn, micro)
        total_loss, total = carry
        return (total_loss + loss, jax.tree_util.tree_map(jnp.add, total, grads)), None

    zeros = jax.tree_util.tree_map(jnp.zeros_like, state.params)
    (loss, grads), _ = jax.lax.scan(body, (0.0, zeros), batches)
    grads = jax.tree_util.tree_map(lambda g: g / num_micro, grads)
    return state.apply_gradients(grads=grads), loss / num_micro


def train(state, loader, steps):
    for step, batches in zip(range(steps), loader):
        state, loss = train_step(state, batches)
        if step % 20 == 0:
            print(step, float(loss))
