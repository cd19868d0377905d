# expect: note tail_dropped
def train(model, optimizer, loader, args, state):
    global_step = state["global_step"]
    start_epoch = global_step * args.accum_steps // len(loader)
    skip = global_step * args.accum_steps % len(loader)
    for epoch in range(start_epoch, args.epochs):
        optimizer.zero_grad()
        for i, batch in enumerate(loader):
            if epoch == start_epoch and i < skip:
                continue
            (model(**batch).loss / args.accum_steps).backward()
            if (i + 1) % args.accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                global_step += 1
