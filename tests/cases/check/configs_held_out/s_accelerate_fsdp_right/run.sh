accelerate launch --config_file fsdp.yaml sft.py --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --max_steps 1000 --warmup_steps 50
