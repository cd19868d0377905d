# expect: ok
import jax
import jax.numpy as jnp
import optax


def check_updates():
    one = jnp.array(1.0)
    gradient = jax.grad(lambda p, x: p * x)
    params = jnp.array(0.0)
    optimizer = optax.adam(0.1)
    state = optimizer.init(params)
    for step in range(4):
        updates, state = optimizer.update(gradient(params, one), state, params)
        params = optax.apply_updates(params, updates)
