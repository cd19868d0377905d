deepspeed --num_gpus 8 run_clm.py --deepspeed ds.json --per_device_train_batch_size 4 --gradient_accumulation_steps 4
