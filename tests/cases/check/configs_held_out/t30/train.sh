torchrun --nproc_per_node 8 finetune.py --deepspeed ds.json --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --fp16 --learning_rate 1e-5
