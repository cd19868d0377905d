# expect: mistake off_by_one_boundary log_factor
import torch
from accelerate import Accelerator
from tqdm.auto import tqdm
from transformers import get_scheduler


def main(args, model, train_loader):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    max_train_steps = args.num_epoch * len(train_loader) // args.accumulate_step
    lr_scheduler = get_scheduler("linear", optimizer, num_warmup_steps=100, num_training_steps=max_train_steps)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    progress_bar = tqdm(range(max_train_steps), disable=not accelerator.is_local_main_process)
    completed_steps = 0
    for epoch in range(args.num_epoch):
        model.train()
        optimizer.zero_grad()
        for step, batch in enumerate(train_loader):
            outputs = model(**batch)
            loss = outputs.loss
            loss = loss / args.accumulate_step
            accelerator.backward(loss)
            if step % args.accumulate_step == 0 or step == len(train_loader) - 1:
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
                progress_bar.set_postfix({"loss": f"{loss.item():.3f}"})
                progress_bar.update(1)
                completed_steps += 1
            if completed_steps >= max_train_steps:
                break
