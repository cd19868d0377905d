# expect: ok
from ignite.engine import Engine, Events

accumulation_steps = 4


def build_trainer(model, optimizer, criterion, device):
    def update_fn(engine, batch):
        model.train()
        x, y = prepare_batch(batch, device=device, non_blocking=True)
        y_pred = model(x)
        loss = criterion(y_pred, y) / accumulation_steps
        loss.backward()
        if engine.state.iteration % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.item() * accumulation_steps

    trainer = Engine(update_fn)
    return trainer
