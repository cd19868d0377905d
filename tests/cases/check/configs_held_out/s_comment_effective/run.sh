# effective batch size: 128
torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 4 --gradient_accumulation_steps 32 --learning_rate 1e-5
