# expect: mistake no_division
import torch
import torch.nn as nn


def train(model, loader, args):
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    ce = nn.CrossEntropyLoss()
    total_loss = 0
    for epoch in range(args.num_epochs):
        for i, (xb, yb) in enumerate(loader):
            loss = ce(model(xb.to(args.device)), yb.to(args.device))
            total_loss += loss
            if (i + 1) % args.accumulation_steps == 0 or i == len(loader) - 1:
                opt.zero_grad()
                total_loss.backward()
                opt.step()
                total_loss = 0
