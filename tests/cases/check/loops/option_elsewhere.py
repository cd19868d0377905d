# expect: cannot_tell
from settings import args


def train(model, loader, optimizer):
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        loss = model(batch)
        if not args.keep_sum:
            loss = loss / args.accum_steps
        loss.backward()
        if (i + 1) % args.accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
