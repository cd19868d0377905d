#!/bin/sh
# 1200 images, 10 epochs
accelerate launch --num_processes 1 train_network.py --train_batch_size=2 --gradient_accumulation_steps=6 --max_train_steps=12000 --learning_rate=1e-4
