# expect: mistake zero_grad_in_window
from itertools import zip_longest

import torch


def train_multitask(args, model, sst_loader, para_loader, sts_loader, criterion_sst, criterion_para, criterion_sts):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total_loss, total_batches = 0, 0
        gradient_accumulation_counter = 0
        for sst, para, sts in zip_longest(sst_loader, para_loader, sts_loader, fillvalue=None):
            optimizer.zero_grad()
            loss_sst, loss_para, loss_sts = 0, 0, 0
            if sst is not None:
                loss_sst = criterion_sst(model.predict_sentiment(sst["ids"], sst["mask"]), sst["labels"])
            if para is not None:
                loss_para = criterion_para(model.predict_paraphrase(para["ids_1"], para["ids_2"]), para["labels"].float())
            if sts is not None:
                loss_sts = criterion_sts(model.predict_similarity(sts["ids_1"], sts["ids_2"]), sts["labels"].float())
            loss = loss_sst + loss_para + loss_sts
            loss.backward()
            gradient_accumulation_counter += 1
            if gradient_accumulation_counter % args.gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                gradient_accumulation_counter = 0
            total_loss += loss.item()
            total_batches += 1
        print(f"Epoch {epoch + 1} Loss: {total_loss / total_batches:.4f}")
