#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
GLOBAL_BATCH=128
PER_DEV=4
GA=$(( GLOBAL_BATCH / PER_DEV / 8 ))
srun torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d train.py --per_device_train_batch_size $PER_DEV --gradient_accumulation_steps $GA --learning_rate 2e-5
