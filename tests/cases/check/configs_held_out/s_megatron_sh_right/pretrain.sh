#!/bin/bash
GPUS_PER_NODE=8
NNODES=2
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 \
  --micro-batch-size 4 --global-batch-size 256 \
  --train-iters 500000 --lr-decay-iters 320000 --lr-warmup-fraction .01 \
  --lr 0.00015 --min-lr 1.0e-5 --clip-grad 1.0
