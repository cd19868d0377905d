torchrun --nproc_per_node 2 train.py --output_dir out --per_device_train_batch_size 4 \
  --gradient_accumulation_steps 8 --learning_rate 1e-5 --max_steps 500 --fp16 --bf16
