#!/bin/bash
torchrun --nproc_per_node 8 --nnodes 3 pretrain_gpt.py \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 \
  --micro-batch-size 4 --global-batch-size 256 \
  --train-iters 500000 --lr 0.00015 --clip-grad 1.0
