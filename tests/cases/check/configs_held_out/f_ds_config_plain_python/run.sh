#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
python finetune/finetune.py --model_path bigcode/starcoder --deepspeed ds_config.json --learning_rate 5e-6 --num_warmup_steps 100
