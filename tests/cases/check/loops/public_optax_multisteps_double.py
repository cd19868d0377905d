# expect: mistake double_division
import jax
import jax.numpy as jnp
import optax

accum_steps = 16
optimizer = optax.MultiSteps(optax.adamw(1e-4), every_k_schedule=accum_steps)
opt_state = optimizer.init(params)


def loss_fn(params, batch):
    pred = net.apply(params, batch["x"])
    return jnp.mean(jnp.abs(pred - batch["y"])) / accum_steps


@jax.jit
def update(params, opt_state, batch):
    loss, grads = jax.value_and_grad(loss_fn)(params, batch)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


for batch in dataset:
    params, opt_state, loss = update(params, opt_state, batch)
