accelerate launch --config_file accelerate.yaml sft.py --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --max_grad_norm 1.0 --learning_rate 1e-5
