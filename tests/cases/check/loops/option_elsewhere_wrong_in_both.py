# expect: mistake no_division
from settings import args


def train(model, loader, optimizer):
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        loss = model(batch)
        if args.smooth:
            loss = loss * 0.9
        loss.backward()
        if (i + 1) % args.accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
