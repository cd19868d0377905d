# expect: mistake off_by_one_boundary
import numpy as np
import torch
from time import time
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import get_linear_schedule_with_warmup


def train(args, model, train_features, dev_features, test_features):
    def finetune(features, optimizer, num_epoch, num_steps):
        best_score = -1
        train_dataloader = DataLoader(features, batch_size=args.train_batch_size, shuffle=True, collate_fn=collate_fn, drop_last=True)
        train_iterator = range(int(num_epoch))
        total_steps = int(len(train_dataloader) * num_epoch // args.gradient_accumulation_steps)
        warmup_steps = int(total_steps * args.warmup_ratio)
        scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=warmup_steps, num_training_steps=total_steps)
        for epoch in train_iterator:
            t1 = time()
            model.zero_grad()
            for step, batch in enumerate(train_dataloader):
                model.train()
                inputs = {"input_ids": batch[0].to(args.device),
                          "attention_mask": batch[1].to(args.device),
                          "labels": batch[2],
                          "entity_pos": batch[3],
                          "hts": batch[4]}
                outputs = model(**inputs)
                loss = outputs[0] / args.gradient_accumulation_steps
                loss.backward()
                if step % args.gradient_accumulation_steps == 0:
                    if args.max_grad_norm > 0:
                        torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                    optimizer.step()
                    scheduler.step()
                    model.zero_grad()
                    num_steps += 1
                if (step + 1) == len(train_dataloader) - 1:
                    dev_score, dev_output = evaluate(args, model, dev_features, tag="dev")
                    print(f"epoch:{epoch}, time:{time() - t1:.0f}", dev_output)
                    if dev_score > best_score:
                        best_score = dev_score
                        torch.save(model.state_dict(), args.save_path)
        return num_steps

    new_layer = ["extractor", "bilinear"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in new_layer)]},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in new_layer)], "lr": 1e-4},
    ]
    optimizer = AdamW(groups, lr=args.learning_rate, eps=args.adam_epsilon)
    finetune(train_features, optimizer, args.num_train_epochs, 0)
