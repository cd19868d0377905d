import deepspeed
MICRO = 4
ds_config = {
    "train_batch_size": 96,
    "train_micro_batch_size_per_gpu": MICRO,
    "gradient_accumulation_steps": 5,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-4}},
    "fp16": {"enabled": True},
}
engine, _, _, _ = deepspeed.initialize(model=model, config=ds_config)
