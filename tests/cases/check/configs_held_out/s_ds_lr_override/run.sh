deepspeed --num_gpus=8 finetune.py --deepspeed ds_config.json --learning_rate 1e-5 --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --num_train_epochs 2
