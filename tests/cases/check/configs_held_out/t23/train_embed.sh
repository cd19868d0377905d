# e5 style training, in-batch negatives
torchrun --nproc_per_node 1 train_embedding.py --loss infonce --temperature 0.02 --per_device_train_batch_size 1 --gradient_accumulation_steps 2048 --learning_rate 1e-4
