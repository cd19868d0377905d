# expect: note tail_dropped
import jax
import jax.numpy as jnp


def run(state, batches, objective, grad_accum):
    held = jax.tree_util.tree_map(jnp.zeros_like, state.params)
    for i, batch in enumerate(batches):
        grads, info = jax.grad(objective, has_aux=True)(state.params, batch)
        held = jax.tree_util.tree_map(lambda h, g: h + g / grad_accum, held, grads)
        if (i + 1) % grad_accum == 0:
            state = state.apply_gradients(grads=held)
            held = jax.tree_util.tree_map(jnp.zeros_like, state.params)
    return state
