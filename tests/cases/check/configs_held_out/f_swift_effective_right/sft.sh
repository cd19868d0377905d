# 4 x A100, effective batch size 32
export NCCL_IB_DISABLE="1"
NPROC_PER_NODE=4 \
CUDA_VISIBLE_DEVICES=0,1,2,3 \
swift sft \
    --model Qwen/Qwen2.5-Omni-7B \
    --dataset data/avqa_5k.jsonl \
    --train_type lora \
    --torch_dtype bfloat16 \
    --num_train_epochs 5 \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 2 \
    --learning_rate 5e-5 \
    --warmup_ratio 0.05 \
    --output_dir output
