# expect: ok
import click
import torch


@click.command()
@click.option("--grad-accum", default=4)
@click.option("--sum-loss/--mean-loss", default=False)
def train(grad_accum, sum_loss):
    model, optimizer, loader = setup()
    optimizer.zero_grad()
    for step, batch in enumerate(loader, start=1):
        loss = model(**batch).loss
        loss = loss if sum_loss else loss / grad_accum
        loss.backward()
        if step % grad_accum == 0:
            optimizer.step()
            optimizer.zero_grad()
