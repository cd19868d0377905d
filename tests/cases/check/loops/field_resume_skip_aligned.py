# expect: ok
import torch
from tqdm import tqdm


def train(args, model, train_dataloader, optimizer, scheduler, tokenizer):
    global_step, steps_trained, epochs_trained, skip = 0, 0, 0, 0
    updates_per_epoch = len(train_dataloader) // args.gradient_accumulation_steps
    if args.resume:
        global_step = int(args.resume.split("-")[-1])
        epochs_trained = global_step // updates_per_epoch
        skip = (global_step % updates_per_epoch) * args.gradient_accumulation_steps
    tr_loss, logging_loss = 0.0, 0.0
    model.zero_grad()
    for epoch in range(epochs_trained, args.num_train_epochs):
        model.zero_grad()
        for step, batch in enumerate(tqdm(train_dataloader, desc="Iteration")):
            if skip > 0:
                skip -= 1
                continue
            model.train()
            inputs = {k: v.to(args.device) for k, v in batch.items()}
            loss = model(**inputs)[0]
            if args.n_gpu > 1:
                loss = loss.mean()
            tr_loss += loss.item()
            if args.gradient_accumulation_steps > 1:
                loss = loss / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                scheduler.step()
                model.zero_grad()
                global_step += 1
                if args.logging_steps > 0 and global_step % args.logging_steps == 0:
                    mean = (tr_loss - logging_loss) / (args.logging_steps * args.gradient_accumulation_steps)
                    print(f"step {global_step} loss {mean:.4f} lr {scheduler.get_last_lr()[0]:.2e}")
                    logging_loss = tr_loss
                if args.save_steps > 0 and global_step % args.save_steps == 0:
                    model.save_pretrained(f"{args.output_dir}/checkpoint-{global_step}")
