# effective batch size: 4 * 8 * 2 = 64
torchrun --nproc_per_node=2 train.py --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --learning_rate 2e-5
