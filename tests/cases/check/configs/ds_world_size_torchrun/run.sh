#!/bin/bash
torchrun --nproc_per_node=4 finetune.py \
    --model_name_or_path facebook/opt-1.3b \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 8 \
    --deepspeed ds.json
