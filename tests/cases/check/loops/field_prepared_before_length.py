# expect: ok
import torch
from accelerate import Accelerator
from transformers import get_linear_schedule_with_warmup


def main(args):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    train_loader = torch.utils.data.DataLoader(build_dataset(args), batch_size=args.batch_size, shuffle=True)
    model = build_model(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    steps = len(train_loader) * args.epochs // args.gradient_accumulation_steps
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=int(0.1 * steps), num_training_steps=steps)
    model, optimizer, train_loader, lr_scheduler = accelerator.prepare(model, optimizer, train_loader, lr_scheduler)
    criterion = torch.nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for data in train_loader:
            with accelerator.accumulate(model):
                logits = model(data)[:, 1:-1, 1:-1]
                mask = data["struct"] != -1
                loss = criterion(logits[mask].reshape(-1, 1), data["struct"][mask].reshape(-1, 1))
                accelerator.backward(loss)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach().float()).mean().item())
        accelerator.print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
