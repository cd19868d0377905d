# expect: ok
def count(parameter):
    seen[parameter] += 1

for p in model.parameters():
    p.register_post_accumulate_grad_hook(count)

for step, batch in enumerate(loader):
    loss = model(**batch).loss / accum_steps
    loss.backward()
    if (step + 1) % accum_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
