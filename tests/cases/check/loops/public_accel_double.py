# expect: mistake double_division
from accelerate import Accelerator
from torch.optim import AdamW


def finetune(cfg, model, train_loader, scheduler):
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=cfg.train.grad_accum)
    optimizer = AdamW(model.parameters(), lr=cfg.train.lr)
    model, optimizer, train_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, scheduler)
    for epoch in range(cfg.train.epochs):
        for step, batch in enumerate(train_loader):
            with accelerator.accumulate(model):
                outputs = model(**batch)
                loss = outputs.loss / cfg.train.grad_accum
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if step % 10 == 0:
                accelerator.print(f"{epoch} {step} {outputs.loss.item():.4f}")
