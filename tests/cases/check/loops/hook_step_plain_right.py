# expect: ok
optimizers = {p: torch.optim.AdamW([p], lr=1e-5) for p in model.parameters()}

def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()

for p in model.parameters():
    p.register_post_accumulate_grad_hook(update)

for step, batch in enumerate(loader):
    loss = model(**batch).loss
    loss.backward()
