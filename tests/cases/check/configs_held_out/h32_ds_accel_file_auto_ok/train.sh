accelerate launch --config_file accelerate_config.yaml train.py --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --bf16 --max_grad_norm 1.0 --learning_rate 1e-5 --warmup_ratio 0.03
