# expect: mistake missing_zero_grad
import jax
import jax.numpy as jnp
import optax


def train(model, params, tx, batches, accum):
    opt_state = tx.init(params)

    def loss_fn(p, batch):
        return jnp.mean(optax.l2_loss(model.apply(p, batch["x"]), batch["y"])) / accum

    grad_fn = jax.jit(jax.value_and_grad(loss_fn))
    total = jax.tree_util.tree_map(jnp.zeros_like, params)
    for i, batch in enumerate(batches):
        loss, grads = grad_fn(params, batch)
        total = jax.tree_util.tree_map(jnp.add, total, grads)
        if (i + 1) % accum == 0:
            updates, opt_state = tx.update(total, opt_state, params)
            params = optax.apply_updates(params, updates)
    return params
