# expect: mistake sched_per_micro_step
def train(model, train_loader, epochs, accumulation_steps, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    updates = math.ceil(len(train_loader) / accumulation_steps) * epochs
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=updates)
    for epoch in range(epochs):
        for i, batch in enumerate(train_loader):
            loss = model(**batch).loss / accumulation_steps
            loss.backward()
            scheduler.step()
            if (i + 1) % accumulation_steps == 0 or i + 1 == len(train_loader):
                optimizer.step()
                optimizer.zero_grad()
