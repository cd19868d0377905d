#!/bin/bash
deepspeed --num_nodes 2 --num_gpus 8 llava/train/train_mem.py \
    --deepspeed ./zero3.json \
    --model_name_or_path lmsys/vicuna-7b-v1.5 \
    --bf16 True \
    --per_device_train_batch_size 8 \
    --gradient_accumulation_steps 2 \
    --learning_rate 2e-5
