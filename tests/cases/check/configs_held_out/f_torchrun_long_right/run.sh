#!/usr/bin/env bash
set -euo pipefail
PROJECT_DIR="$(cd "$(dirname "$0")/.." && pwd)"
export OUTPUT_DIR="${OUTPUT_DIR:-$PROJECT_DIR/out}"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}"
export TOKENIZERS_PARALLELISM=false
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}"
mkdir -p "${OUTPUT_DIR}"
torchrun \
  --standalone \
  --nnodes=1 \
  --nproc_per_node=8 \
  "${PROJECT_DIR}/src/pretrain.py" \
  --seq_len 2048 \
  --per_device_batch_size 1 \
  --gradient_accumulation_steps 8 \
  --max_steps 1000000 \
  --learning_rate 3e-4 \
  --warmup_steps 1000 \
  --max_grad_norm 1.0 \
  --log_steps 10 \
  "$@"
