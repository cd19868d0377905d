# global batch size = 16 * 2 * 4 = 128
accelerate launch --config_file fsdp.yaml --num_machines 2 --machine_rank $RANK train.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --warmup_ratio 0.03 --num_train_epochs 3
