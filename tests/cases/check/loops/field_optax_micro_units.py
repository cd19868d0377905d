# expect: mistake sched_units
import jax
import optax
from flax.training import train_state


def create_state(rng, model, config, steps_per_epoch):
    total_steps = config.num_epochs * steps_per_epoch
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=0.0, peak_value=config.lr, warmup_steps=config.warmup_epochs * steps_per_epoch, decay_steps=total_steps)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.1))
    if config.grad_accum_steps > 1:
        tx = optax.MultiSteps(tx, every_k_schedule=config.grad_accum_steps)
    params = model.init(rng, dummy_input(config))
    return train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)


@jax.jit
def train_step(state, batch):
    def loss_fn(params):
        logits = state.apply_fn(params, batch["image"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def train(config, model, train_loader):
    state = create_state(jax.random.PRNGKey(0), model, config, steps_per_epoch=len(train_loader))
    for epoch in range(config.num_epochs):
        for batch in train_loader:
            state, loss = train_step(state, batch)
        print(epoch, loss)
