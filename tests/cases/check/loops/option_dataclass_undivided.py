# expect: mistake no_division
from dataclasses import dataclass, field

import tyro


@dataclass
class Settings:
    accumulation_steps: int = 4
    loss_reduction: str = field(default="sum")


def main():
    settings = tyro.cli(Settings)
    model, optimizer, loader = setup(settings)
    optimizer.zero_grad()
    for step, batch in enumerate(loader):
        loss = model(**batch).loss
        if settings.loss_reduction == "mean":
            loss = loss / settings.accumulation_steps
        loss.backward()
        if (step + 1) % settings.accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


main()
