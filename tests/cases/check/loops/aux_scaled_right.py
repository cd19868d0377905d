# expect: note tail_dropped
for step, batch in enumerate(loader):
    out = model(batch["tokens"], labels=batch["labels"])
    main = out.loss
    balance = load_balance(out.router_logits)
    total = (main + 0.01 * balance) / accumulation_steps
    total.backward()
    if (step + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
