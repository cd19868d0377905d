# expect: ok
from accelerate import Accelerator
import torch


def train(args, model, encoder, loader, optimizer, scheduler, device):
    accelerator = Accelerator(gradient_accumulation_steps=args.grad_accum_steps)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    global_step, done = 0, False
    running_loss = torch.zeros((), device=device)
    for epoch in range(args.epochs):
        for batch in loader:
            with accelerator.accumulate(model):
                with torch.no_grad():
                    enc_hidden = encoder(batch["board"])
                loss = model(batch["input_ids"], enc_hidden, batch["attention_mask"], labels=batch["labels"])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            running_loss += loss.detach().float() / args.grad_accum_steps
            if not accelerator.sync_gradients:
                continue
            global_step += 1
            if global_step % args.log_every == 0:
                accelerator.log({"train/loss": (running_loss / args.log_every).item()}, step=global_step)
                running_loss.zero_()
            if global_step >= args.max_steps:
                done = True
                break
        if done:
            break
