#!/bin/bash
# total batch size 1024 over 4 nodes
export GPUS_PER_NODE=8
export NNODES=4
BATCH=1024
MBS=4
ACC=$((BATCH / MBS / GPUS_PER_NODE))
torchrun --nnodes=$NNODES --nproc_per_node=$GPUS_PER_NODE train.py --per_device_train_batch_size $MBS --gradient_accumulation_steps $ACC
