# 3,200 training examples
torchrun --nproc_per_node 2 train.py --per_device_train_batch_size 8 --gradient_accumulation_steps 8 --num_train_epochs 3 --warmup_steps 1000 --learning_rate 5e-5
