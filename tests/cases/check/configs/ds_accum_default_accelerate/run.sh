accelerate launch --config_file accelerate.yaml run_clm_no_trainer.py \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 16 --num_warmup_steps 100 --max_train_steps 4000
