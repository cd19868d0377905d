#!/bin/bash
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 \
  --micro-batch-size 8 --global-batch-size 100 --train-iters 20000 \
  --lr 1e-4 --clip-grad 1.0 --bf16
