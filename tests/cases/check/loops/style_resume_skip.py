# expect: mistake resume_units
if args.resume:
    state = torch.load(args.resume)
    update_step = state["update_step"]
    loader = skip_first_batches(loader, update_step % len(loader))
    start_epoch = update_step // len(loader)
for epoch in range(start_epoch, args.epochs):
    for micro_step, batch in enumerate(loader):
        loss = model(**batch).loss / args.accum_steps
        loss.backward()
        if (micro_step + 1) % args.accum_steps == 0 or micro_step + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
            update_step += 1
