# expect: mistake tail_leak
def train(model, train_loader, optimizer, args):
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch_idx, (data, target) in enumerate(train_loader, start=1):
            output = model(data)
            loss = F.nll_loss(output, target) / args.accum
            loss.backward()
            if batch_idx % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
        test(model)
