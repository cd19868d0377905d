batch_size = 12
gradient_accumulation_steps = 4
max_iters = 1000
lr_decay_iters = 1000
warmup_iters = 2000
