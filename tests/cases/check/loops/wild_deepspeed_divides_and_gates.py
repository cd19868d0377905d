# expect: mistake double_division log_factor clip_per_micro_step
import deepspeed
import torch
from torch.utils.data import DataLoader


def main(args, model, train_dataset, conf):
    loader = DataLoader(train_dataset, batch_size=conf["train_micro_batch_size_per_gpu"], shuffle=True)
    model_engine, optimizer, _, _ = deepspeed.initialize(config=conf, model=model, model_parameters=model.parameters())
    model_engine.train()
    global_step = 0
    for i_epoch in range(args.num_train_epochs):
        for step, batch in enumerate(iter(loader)):
            outputs = model_engine.forward(input_ids=batch["input_ids"].cuda(), labels=batch["labels"].cuda())
            loss = outputs[0]
            if conf["gradient_accumulation_steps"] > 1:
                loss = loss / conf["gradient_accumulation_steps"]
            model_engine.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if (step + 1) % conf["gradient_accumulation_steps"] == 0:
                model_engine.step()
                global_step += 1
            if global_step % args.log_steps == 0:
                print("loss:{}, global_step:{}".format(float(loss.item()), global_step))
