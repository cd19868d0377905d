# expect: ok
import functools
import jax
import jax.numpy as jnp
import optax


def make_step(model, tx, accum_steps):
    def loss_fn(params, micro):
        logits = model.apply(params, micro["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, micro["y"]).mean()

    grad_fn = jax.value_and_grad(loss_fn)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, opt_state, batch):
        micro = jax.tree_util.tree_map(lambda a: a.reshape((accum_steps, -1) + a.shape[1:]), batch)

        def body(carry, mb):
            total_loss, total_grads = carry
            loss, grads = grad_fn(params, mb)
            return (total_loss + loss, jax.tree_util.tree_map(jnp.add, total_grads, grads)), None

        zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
        (loss, grads), _ = jax.lax.scan(body, (0.0, zeros), micro)
        grads = jax.tree_util.tree_map(lambda g: g / accum_steps, grads)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, opt_state, loss / accum_steps

    return step
