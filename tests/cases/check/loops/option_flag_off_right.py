# expect: ok
import argparse

import torch
import torch.nn.functional as F


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accum", type=int, default=8)
    parser.add_argument("--no-div", action="store_true", help="keep the loss as it is")
    return parser.parse_args()


def main():
    args = parse()
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = build_loader(args)
    for epoch in range(3):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y)
            if not args.no_div:
                loss = loss / args.accum
            loss.backward()
            if (i + 1) % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()


main()
