# expect: mistake ema_per_micro_step
import os
import torch
from accelerate import Accelerator
from tqdm import tqdm


def main(args, model, loss_func, config):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = torch.utils.data.DataLoader(build(args), batch_size=args.batch_size)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    completed_steps = 0
    for epoch in range(args.train_epoch):
        model.train()
        for step, batch in enumerate(tqdm(loader)):
            with accelerator.accumulate(model):
                outputs = model(batch)
                loss = loss_func(outputs.view(-1, config.vocab_size), batch["labels"].view(-1))
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                completed_steps += 1
            if isinstance(args.checkpointing_steps, int):
                if completed_steps % args.checkpointing_steps == 0:
                    accelerator.save_state(os.path.join(args.output_dir, f"step_{completed_steps}"))
            if completed_steps >= args.max_train_steps:
                break
