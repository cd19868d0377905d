#!/bin/bash
NUM_EXAMPLES=96000
NUM_GPUS=8
MICRO=4
ACCUM=4
EPOCHS=2
MAX_STEPS=$((NUM_EXAMPLES * EPOCHS / (MICRO * ACCUM)))
torchrun --nproc_per_node=$NUM_GPUS train.py --per_device_train_batch_size $MICRO --gradient_accumulation_steps $ACCUM --max_steps $MAX_STEPS
