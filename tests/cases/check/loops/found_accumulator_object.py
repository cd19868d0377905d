# expect: mistake off_by_one_boundary
import torch


class GradientAccumulator:
    def __init__(self, accumulation_steps: int = 1):
        self.accumulation_steps = accumulation_steps
        self._step_count = 0

    def step(self) -> None:
        self._step_count += 1

    def should_step(self) -> bool:
        return self._step_count % self.accumulation_steps == 0

    def reset(self) -> None:
        self._step_count = 0


def train(model, dataloader, optimizer, epochs, accumulation_steps=4):
    for epoch in range(epochs):
        accum = GradientAccumulator(accumulation_steps=accumulation_steps)
        optimizer.zero_grad()
        for batch in dataloader:
            loss = model(batch) / accum.accumulation_steps
            loss.backward()
            if accum.should_step():
                optimizer.step()
                optimizer.zero_grad()
            accum.step()
