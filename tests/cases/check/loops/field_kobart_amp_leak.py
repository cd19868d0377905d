# expect: mistake tail_leak
import torch
from transformers import AutoModelForSeq2SeqLM, get_scheduler
from torch.utils.data import DataLoader
from tqdm import tqdm
import wandb


def main(micro_batch_size=4, gradient_accumulation_steps=8, num_epochs=5, use_wandb=True):
    model = AutoModelForSeq2SeqLM.from_pretrained("gogamza/kobart-base-v2").cuda()
    train_data, val_data = load_splits()
    train_dataloader = DataLoader(train_data, batch_size=micro_batch_size, shuffle=True, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    num_training_steps = (len(train_dataloader) * num_epochs) // gradient_accumulation_steps
    lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=100, num_training_steps=num_training_steps)
    scaler = torch.cuda.amp.GradScaler(enabled=True)
    global_step = 0
    model.zero_grad()
    for epoch in range(num_epochs):
        loop = tqdm(train_dataloader, desc=f"Epoch {epoch+1}/{num_epochs}")
        for step, batch in enumerate(loop):
            batch = {k: v.to("cuda") for k, v in batch.items()}
            with torch.cuda.amp.autocast(enabled=True):
                outputs = model(**batch)
                loss = outputs.loss / gradient_accumulation_steps
            scaler.scale(loss).backward()
            if (step + 1) % gradient_accumulation_steps == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                lr_scheduler.step()
                global_step += 1
                loop.set_postfix(loss=loss.item() * gradient_accumulation_steps, step=global_step)
                if use_wandb:
                    wandb.log({"train/loss": loss.item() * gradient_accumulation_steps, "train/learning_rate": lr_scheduler.get_last_lr()[0]}, step=global_step)
