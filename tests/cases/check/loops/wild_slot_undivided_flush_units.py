# expect: mistake no_division sched_units
import torch
from transformers import AdamW, get_linear_schedule_with_warmup
from tqdm import tqdm


def run(args, model, train_set, train_loader, output_dir):
    batch_num = len(train_loader)
    optimizer = AdamW(params=model.parameters(), lr=args.learning_rate)
    schedule = get_linear_schedule_with_warmup(optimizer,
                                               num_warmup_steps=batch_num * args.warmup_epoch,
                                               num_training_steps=batch_num * args.max_epoch)
    for epoch in range(args.max_epoch):
        training_loss = 0
        model.train()
        for batch_idx, (input_ids, attn_mask, decoder_ids, strings) in enumerate(tqdm(train_loader)):
            loss = model(input_ids, attention_mask=attn_mask, decoder_input_ids=decoder_ids[:, :-1],
                         decoder_labels=decoder_ids[:, 1:], decoder_label_strings=strings)
            loss.backward()
            training_loss += loss.item()
            if (batch_idx + 1) % args.accumulate_step == 0:
                if "t5" not in args.model_name:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        print("Training loss", training_loss)
        # the last batches
        if batch_num % args.accumulate_step != 0:
            if "t5" not in args.model_name:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
