# expect: ok
import torch
from tqdm import tqdm


def train(args, model, processor, train_loader, optimizer, scheduler, logger, device, epochs):
    accum_steps = args.accum_steps
    global_step = 0
    accum_loss = 0
    optimizer.zero_grad()
    for epoch in range(epochs):
        model.train()
        bar = tqdm(train_loader)
        bar.set_description(f"[Train {epoch}/{epochs}]")
        for ids, batch in bar:
            inputs = processor(images=batch["image"], text=batch["text"], return_tensors="pt").to(device, torch.bfloat16)
            labels = inputs["input_ids"].clone()
            out = model.forward(**inputs, labels=labels, use_cache=False)
            loss = out.loss / accum_steps
            loss.backward()
            global_step += 1
            accum_loss += loss.item()
            if global_step % accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
                logger({"train/loss": accum_loss, "global_step": global_step})
                logger({"train/lr": scheduler.get_last_lr()[0], "global_step": global_step})
                accum_loss = 0
            del out, loss, labels
