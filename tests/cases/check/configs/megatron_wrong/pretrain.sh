GPUS_PER_NODE=8
torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py --micro-batch-size 6 --global-batch-size 256 --train-iters 50000 --lr-warmup-iters 500 --lr 1.5e-4
