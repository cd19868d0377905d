accelerate launch --num_processes 8 train.py --gradient_accumulation_steps 2 --lr_scheduler cosine --max_train_steps 1000 --learning_rate 1e-4 --lr_warmup_steps 50
