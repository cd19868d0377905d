# expect: mistake double_division
import argparse

import deepspeed


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradient_accumulation_steps", type=int, default=16)
    parser.add_argument("--micro_batch", type=int, default=2)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


args = get_args()
ds_config = {
    "train_micro_batch_size_per_gpu": args.micro_batch,
    "gradient_accumulation_steps": args.gradient_accumulation_steps,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
}
model_engine, _, _, _ = deepspeed.initialize(model=model, config=ds_config)
for epoch in range(3):
    for step, batch in enumerate(train_dataloader):
        loss = model_engine(batch["input_ids"], labels=batch["labels"]).loss
        loss = loss / args.gradient_accumulation_steps
        model_engine.backward(loss)
        model_engine.step()
