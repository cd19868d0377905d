#!/usr/bin/env bash
EXAMPLES=40000
EPOCHS=2
PER_GPU=5
ACCUM=4
GPUS=4
UPDATES=$((EXAMPLES * EPOCHS / (PER_GPU * ACCUM)))
torchrun --nproc_per_node $GPUS finetune.py --per_device_train_batch_size $PER_GPU \
    --gradient_accumulation_steps $ACCUM --max_steps $UPDATES --warmup_ratio 0.05 --output_dir out
