# expect: ok
import jax
import optax
from flax.training import train_state

K = 8
schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-4, 100, 2000)
tx = optax.MultiSteps(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)), every_k_schedule=K)
state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)


@jax.jit
def train_step(state, batch):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, batch["tokens"])
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], batch["tokens"][:, 1:]).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


for i, batch in enumerate(loader):
    state, loss = train_step(state, batch)
    if i % 100 == 0:
        print(i // K, loss)
