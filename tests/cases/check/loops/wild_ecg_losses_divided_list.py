# expect: mistake log_factor
import numpy as np
import torch
from loguru import logger
from torch import amp, optim
from tqdm import tqdm


def finetune(hubert, train_dl, criterion, args, device):
    lr, weight_decay = args.lr, args.weight_decay
    accumulation_steps = args.accumulation_steps
    optimizer = optim.AdamW(filter(lambda p: p.requires_grad, hubert.parameters()), lr=lr, weight_decay=weight_decay)
    lr_scheduler = optim.lr_scheduler.LinearLR(optimizer, total_iters=args.ramp_up_steps)
    scaler = amp.GradScaler("cuda")
    global_step = 0
    for epoch in range(args.epochs):
        hubert.train()
        logger.info(f"Epoch {epoch + 1}/{args.epochs}")
        train_losses = []
        for ecg, attention_mask, labels in tqdm(train_dl, total=len(train_dl)):
            global_step += 1
            ecg, attention_mask, labels = ecg.to(device), attention_mask.to(device), labels.to(device)
            with torch.amp.autocast("cuda"):
                logits, _ = hubert(ecg, attention_mask=attention_mask, return_dict=False)
                loss = criterion(logits, labels)
                loss /= accumulation_steps
            scaler.scale(loss).backward()
            train_losses.append(loss.item())
            if global_step % accumulation_steps == 0:
                scaler.step(optimizer)
                lr_scheduler.step()
                scaler.update()
                optimizer.zero_grad()
            if args.freezing_steps is not None and global_step >= args.freezing_steps:
                hubert.set_feature_extractor_trainable(args.unfreeze)
                optimizer = optim.AdamW(filter(lambda p: p.requires_grad, hubert.parameters()), lr=lr, weight_decay=weight_decay)
        train_loss = np.mean(train_losses)
        logger.info(f"Training loss: {train_loss}")
