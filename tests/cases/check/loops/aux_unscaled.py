# expect: mistake aux_loss_unscaled
for step, batch in enumerate(loader):
    out = model(batch["tokens"], labels=batch["labels"])
    main = out.loss / accumulation_steps
    balance = load_balance(out.router_logits)
    total = main + 0.01 * balance
    total.backward()
    if (step + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
