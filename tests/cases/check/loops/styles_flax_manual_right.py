# expect: ok
import jax
import jax.numpy as jnp
import optax


def train(model, params, tx, batches, accum):
    opt_state = tx.init(params)

    def loss_fn(p, batch):
        return jnp.mean(optax.l2_loss(model.apply(p, batch["x"]), batch["y"]))

    grad_fn = jax.jit(jax.value_and_grad(loss_fn))
    grads_acc = None
    for i, batch in enumerate(batches):
        loss, grads = grad_fn(params, batch)
        if grads_acc is None:
            grads_acc = grads
        else:
            grads_acc = jax.tree_util.tree_map(lambda a, b: a + b, grads_acc, grads)
        if (i + 1) % accum == 0:
            grads_acc = jax.tree_util.tree_map(lambda g: g / accum, grads_acc)
            updates, opt_state = tx.update(grads_acc, opt_state, params)
            params = optax.apply_updates(params, updates)
            grads_acc = None
    return params
