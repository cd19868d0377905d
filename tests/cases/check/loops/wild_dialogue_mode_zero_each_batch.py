# expect: mistake zero_grad_in_window log_factor
import numpy as np
import torch


def train_or_eval_model(model, loss_function, dataloader, args, device, optimizer=None, mode="train"):
    losses, masks, preds = [], [], []
    if mode == "train":
        model.train()
    else:
        model.eval()
    for step, batch in enumerate(dataloader):
        if mode == "train":
            optimizer.zero_grad()
        input_ids, label, label_mask = [t.to(device) for t in batch]
        if model.training:
            log_prob, utt_mask = model(input_ids, return_mask_output=True)
        else:
            with torch.no_grad():
                log_prob, utt_mask = model(input_ids, return_mask_output=True)
        if mode == "train":
            loss = loss_function(label, log_prob, label_mask, utt_mask, device)
        else:
            loss = torch.tensor([0])
        if args.accumulate_step > 1:
            loss = loss / args.accumulate_step
        preds.append(torch.gt(log_prob, 0.5).long().cpu().numpy())
        masks.append(label_mask.view(-1).cpu().numpy())
        losses.append(loss.item() * masks[-1].sum())
        if mode == "train":
            total_loss = loss
            total_loss.backward()
            if (step + 1) % args.accumulate_step == 0:
                optimizer.step()
            step += 1
    avg_loss = round(np.sum(losses) / np.sum([m.sum() for m in masks]), 4)
    return avg_loss, preds


def main(args, model, loss_function, train_loader, valid_loader, optimizer, device):
    for e in range(args.epochs):
        train_loss, _ = train_or_eval_model(model, loss_function, train_loader, args, device, optimizer, mode="train")
        valid_loss, _ = train_or_eval_model(model, loss_function, valid_loader, args, device, mode="valid")
        print("epoch: {}, train_loss: {}, valid_loss: {}".format(e + 1, train_loss, valid_loss))
