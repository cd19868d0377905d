# effective batch size: 64
torchrun --nproc_per_node=4 train.py --per_device_train_batch_size 8 --gradient_accumulation_steps 8 --learning_rate 2e-5
