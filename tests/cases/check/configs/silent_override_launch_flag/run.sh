accelerate launch --multi_gpu --num_processes 4 --gradient_accumulation_steps 8 train.py --per_device_train_batch_size 4 --learning_rate 1e-4
