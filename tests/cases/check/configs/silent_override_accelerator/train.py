from accelerate import Accelerator
accelerator = Accelerator(mixed_precision="bf16", log_with="wandb")
model, optim, dl = accelerator.prepare(model, optim, dl)
for batch in dl:
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        optim.step()
        optim.zero_grad()
