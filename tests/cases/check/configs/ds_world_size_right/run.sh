deepspeed --num_gpus 8 train.py --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --deepspeed ds.json --learning_rate 2e-5
