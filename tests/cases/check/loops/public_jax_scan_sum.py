# expect: mistake no_division
import jax
import jax.numpy as jnp
import optax


def make_step(model, tx, accum_steps):
    def loss_fn(params, x, y):
        return jnp.mean((model.apply(params, x) - y) ** 2)

    grad_fn = jax.value_and_grad(loss_fn)

    @jax.jit
    def step(params, opt_state, xs, ys):
        def micro(carry, xy):
            acc, total = carry
            loss, g = grad_fn(params, *xy)
            return (jax.tree_util.tree_map(lambda a, b: a + b, acc, g), total + loss), None

        zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
        (grads, loss), _ = jax.lax.scan(micro, (zeros, 0.0), (xs, ys), length=accum_steps)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss / accum_steps

    return step
