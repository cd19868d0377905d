# expect: mistake sched_units
GRAD_ACCUM = 8
EPOCHS = 4
optimizer = AdamW(model.parameters(), lr=3e-5)
num_training_steps = EPOCHS * len(loader)
scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=100, num_training_steps=num_training_steps)
step = 0
for epoch in range(EPOCHS):
    for batch in loader:
        step += 1
        loss = model(**batch)[0] / GRAD_ACCUM
        loss.backward()
        if step % GRAD_ACCUM == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
