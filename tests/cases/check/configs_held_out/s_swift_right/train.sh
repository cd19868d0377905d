NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1 swift sft \
  --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset AI-ModelScope/alpaca-gpt4-data-zh#500 \
  --num_train_epochs 1 --per_device_train_batch_size 1 --learning_rate 1e-4 --gradient_accumulation_steps $(expr 16 / 2) \
  --warmup_ratio 0.05 --save_steps 50
