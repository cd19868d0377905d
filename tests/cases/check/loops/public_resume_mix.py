# expect: mistake resume_units
import os

import torch


def train(args, model, optimizer, scheduler, train_dataloader):
    global_step, epochs_trained, steps_trained = 0, 0, 0
    if os.path.exists(args.model_name_or_path):
        global_step = int(args.model_name_or_path.split("-")[-1])
        epochs_trained = global_step // len(train_dataloader)
        steps_trained = global_step % len(train_dataloader)
    for epoch in range(epochs_trained, args.num_train_epochs):
        model.zero_grad()
        for step, batch in enumerate(train_dataloader):
            if steps_trained > 0:
                steps_trained -= 1
                continue
            loss = model(**batch).loss / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0 or step + 1 == len(train_dataloader):
                optimizer.step()
                scheduler.step()
                model.zero_grad()
                global_step += 1
                if global_step % args.save_steps == 0:
                    torch.save(model.state_dict(), f"checkpoint-{global_step}")
