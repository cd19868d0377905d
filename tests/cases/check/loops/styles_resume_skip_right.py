# expect: ok
import torch
from accelerate import Accelerator, skip_first_batches


def train(args, model, optimizer, loader, scheduler):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    completed_steps = 0
    starting_epoch, resume_step = 0, None
    if args.resume_from_checkpoint:
        resume_step = int(args.resume_from_checkpoint.split("_")[-1]) * args.gradient_accumulation_steps
        starting_epoch = resume_step // len(loader)
        completed_steps = resume_step // args.gradient_accumulation_steps
        resume_step -= starting_epoch * len(loader)
    for epoch in range(starting_epoch, args.num_train_epochs):
        active = skip_first_batches(loader, resume_step) if resume_step else loader
        for step, batch in enumerate(active):
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                completed_steps += 1
