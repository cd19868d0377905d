# expect: mistake ema_per_micro_step
import torch
from accelerate import Accelerator


def train(args, network, optimizer, train_dataloader, lr_scheduler):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    network, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
        network, optimizer, train_dataloader, lr_scheduler)
    global_step = 0
    for epoch in range(args.max_train_epochs):
        for step, batch in enumerate(train_dataloader):
            with accelerator.accumulate(network):
                loss = network(batch["latents"], batch["cond"]).mean()
                accelerator.backward(loss)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                global_step += 1
            if global_step % args.save_every_n_steps == 0:
                accelerator.wait_for_everyone()
                accelerator.save_state(f"{args.output_dir}/at-step{global_step:08d}")
