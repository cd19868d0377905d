deepspeed --num_gpus=4 run_clm.py --deepspeed ds_z2.json --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --max_grad_norm 0.3 --bf16 --learning_rate 1e-5
