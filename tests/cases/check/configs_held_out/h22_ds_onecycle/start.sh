deepspeed --num_gpus 4 finetune.py --deepspeed dsconf.json --per_device_train_batch_size 8 --learning_rate 1e-5 --num_train_epochs 2 --gradient_accumulation_steps 2
