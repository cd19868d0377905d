# expect: mistake log_factor
import numpy as np
import torch
import torch.nn as nn
from tqdm import tqdm


def train(args, model, train_loader, val_loader, criterion, logger, device):
    optimizer = get_optimizer(model, args)
    scheduler = get_scheduler(optimizer, args)
    start_epoch, best_metric, n_no_improve = 0, -np.inf, 0
    history = []
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    for epoch in range(start_epoch, args.max_epochs):
        model.train()
        train_losses = []
        optimizer.zero_grad()
        for step, batch in enumerate(tqdm(train_loader, desc=f"Train EP{epoch}")):
            loss, _, _ = model_forward(model, args, criterion, batch, device)
            if args.gradient_accumulation_steps > 1:
                loss = loss / args.gradient_accumulation_steps
            train_losses.append(loss.item())
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        history.append(np.mean(train_losses))
        metrics = model_eval(val_loader, model, args, criterion, device)
        logger.info("Train Loss: %.4f", np.mean(train_losses))
        if metrics["f1"] > best_metric:
            best_metric, n_no_improve = metrics["f1"], 0
            torch.save(model.state_dict(), args.savedir)
        else:
            n_no_improve += 1
            if n_no_improve > args.patience:
                break
