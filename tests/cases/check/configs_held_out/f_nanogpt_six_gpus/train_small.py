wandb_log = True
wandb_project = 'owt'
# total batch size per iteration ~0.5M tokens
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 40
max_iters = 600000
lr_decay_iters = 600000
eval_interval = 1000
weight_decay = 1e-1
