# expect: ok
from parts import build


def train(args):
    model, loader = build(args)  # gradient_accumulation_steps is in the engine's own file
    for batch in loader:
        loss = model(batch)
        model.backward(loss)
        model.step()
