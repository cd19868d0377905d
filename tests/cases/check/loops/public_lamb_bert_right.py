# expect: ok
import torch
from apex import amp


def train(args, model, optimizer, lr_scheduler, loaders, criterion, device):
    global_step, training_steps = 0, 0
    for epoch in range(args.epochs):
        for f_id in range(args.num_files):
            train_dataloader = loaders[f_id]
            for step, batch in enumerate(train_dataloader):
                training_steps += 1
                update_step = training_steps % args.gradient_accumulation_steps == 0
                batch = [t.to(device) for t in batch]
                scores, nsp = model(*batch[:3])
                loss = criterion(scores, nsp, batch[3], batch[4])
                loss = loss / args.gradient_accumulation_steps
                with amp.scale_loss(loss, optimizer, delay_overflow_check=args.allreduce_post_accumulation) as scaled_loss:
                    scaled_loss.backward()
                if update_step:
                    lr_scheduler.step()
                    optimizer.step()
                    for param in model.parameters():
                        param.grad = None
                    global_step += 1
                if global_step >= args.max_steps:
                    return global_step
