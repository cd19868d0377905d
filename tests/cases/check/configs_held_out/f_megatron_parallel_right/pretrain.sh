#!/bin/bash
GPUS_PER_NODE=8
NUM_NODES=4
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES --master_addr $MASTER_ADDR --master_port 6000"
MODEL_PARALLEL_ARGS="--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"
TRAINING_ARGS="--micro-batch-size 4 --global-batch-size 1536 --train-iters 500000 --weight-decay 0.1 --clip-grad 1.0 --fp16 --lr 6.0e-5 --lr-decay-style cosine --lr-warmup-fraction .001 --lr-decay-iters 430000"
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py $MODEL_PARALLEL_ARGS $TRAINING_ARGS
