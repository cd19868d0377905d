# expect: ok
def train(model, train_loader, optimizer, args):
    batch_count = 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        for data, target in train_loader:
            output = model(data)
            loss = F.nll_loss(output, target) / args.accum
            loss.backward()
            batch_count += 1
            if batch_count % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
        test(model)
