#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
GLOBAL_BATCH=128
PER_DEV=4
NNODES=2
GPUS=8
GA=$(( GLOBAL_BATCH / (PER_DEV * GPUS * NNODES) ))
srun torchrun --nnodes=$NNODES --nproc_per_node=$GPUS --rdzv_backend=c10d train.py --per_device_train_batch_size $PER_DEV --gradient_accumulation_steps $GA --learning_rate 2e-5
