#!/usr/bin/env bash
set -euo pipefail
NGPUS=$(nvidia-smi -L | wc -l)
GLOBAL_BATCH_SIZE=128
PER_DEVICE_BATCH=4
GRAD_ACCUM=$((GLOBAL_BATCH_SIZE / PER_DEVICE_BATCH / NGPUS))
torchrun --nproc_per_node=$NGPUS train.py \
    --per_device_train_batch_size $PER_DEVICE_BATCH \
    --gradient_accumulation_steps $GRAD_ACCUM \
    --num_train_epochs 2 --learning_rate 1e-5
