GPUS_PER_NODE=8
NNODES=2
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 1 \
  --micro-batch-size 4 --global-batch-size 512 \
  --train-iters 50000 --lr-warmup-iters 2000 --lr 1.5e-4 --clip-grad 1.0
