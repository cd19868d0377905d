# expect: note token_mean_of_means
model = AutoModelForCausalLM.from_pretrained(name)
for i, batch in enumerate(loader):
    loss = model(**batch).loss / accumulation_steps
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
