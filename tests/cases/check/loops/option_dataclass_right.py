# expect: ok
from dataclasses import dataclass, field

from transformers import HfArgumentParser


@dataclass
class LoopArguments:
    accumulation_steps: int = field(default=4)
    loss_reduction: str = field(default="mean", metadata={"help": "mean or sum over the window"})


def main():
    (settings,) = HfArgumentParser(LoopArguments).parse_args_into_dataclasses()
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
