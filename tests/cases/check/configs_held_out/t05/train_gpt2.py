# config for training GPT-2 (124M) on 8 GPUs
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 5 * 8
max_iters = 600000
lr_decay_iters = 600000
warmup_iters = 2000
weight_decay = 1e-1
eval_interval = 1000
