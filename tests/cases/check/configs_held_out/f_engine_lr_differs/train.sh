deepspeed --include localhost:0,1 train_lora.py \
--base_model deepseek-ai/deepseek-llm-7b-base \
--deepspeed ds_zero2.json \
--max_length 4096 \
--per_device_train_batch_size 1 \
--gradient_accumulation_steps 16 \
--learning_rate 5e-5 \
--num_train_epochs 5 \
--warmup_ratio 0.03
