# expect: ok
import torch


def train(model, batches, optimizers, accum_steps, epochs):
    for epoch in range(epochs):
        for opt in optimizers.values():
            opt.zero_grad()
        for i, batch in enumerate(batches):
            loss = model(batch) / accum_steps
            loss.backward()
            if (i + 1) % accum_steps == 0:
                for opt in optimizers.values():
                    opt.step()
                for opt in optimizers.values():
                    opt.zero_grad()
