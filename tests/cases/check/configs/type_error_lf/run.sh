accelerate launch train_bash.py --stage sft --do_train --finetuning_type lora --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --num_train_epochs 1.0 --deepspeed ds.json
