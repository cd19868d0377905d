# 52,002 examples, 4 GPUs
torchrun --nproc_per_node 4 train.py --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --num_train_epochs 3 --max_steps 200 --learning_rate 2e-5
