# expect: ok
import jax
import optax

optimizer = optax.MultiSteps(optax.adamw(3e-4), every_k_schedule=accumulation_steps)
opt_state = optimizer.init(params)

def loss_fn(params, batch):
    return optax.softmax_cross_entropy(model.apply(params, batch["x"]), batch["y"]).mean()

@jax.jit
def train_step(params, opt_state, batch):
    loss, grads = jax.value_and_grad(loss_fn)(params, batch)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss

for batch in loader:
    params, opt_state, loss = train_step(params, opt_state, batch)
