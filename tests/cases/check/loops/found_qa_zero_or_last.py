# expect: mistake off_by_one_boundary
import torch
from tqdm import tqdm
from transformers import AutoModelForQuestionAnswering, get_cosine_schedule_with_warmup


def main(args):
    model = AutoModelForQuestionAnswering.from_pretrained(args.model_name).to(args.device)
    train_dataloader = make_dataloader(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    update_step = args.num_epoch * len(train_dataloader) // args.accum_steps
    scheduler = get_cosine_schedule_with_warmup(optimizer, int(0.1 * update_step), update_step)
    for epoch in range(args.num_epoch):
        model.train()
        optimizer.zero_grad()
        for batch_step, batch_datas in enumerate(tqdm(train_dataloader, desc="Train")):
            input_ids, token_type_ids, attention_mask, start_pos, end_pos = [b.to(args.device) for b in batch_datas.values()]
            outputs = model(input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask, start_positions=start_pos, end_positions=end_pos)
            loss = outputs.loss
            loss = loss / args.accum_steps
            loss.backward()
            if batch_step % args.accum_steps == 0 or batch_step == len(train_dataloader) - 1:
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        evaluate(model, args)
