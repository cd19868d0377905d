train:
	accelerate launch --num_processes=8 --mixed_precision=bf16 train_dreambooth.py --train_batch_size=1 --gradient_accumulation_steps=4 --max_train_steps=500 --lr_warmup_steps=0 --learning_rate=5e-6 --lr_scheduler="constant"
