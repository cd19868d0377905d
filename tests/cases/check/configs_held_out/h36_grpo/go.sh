accelerate launch --num_processes 1 grpo.py
