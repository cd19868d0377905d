torchrun --nproc_per_node=8 train.py \
    --per_device_train_batch_size 8 \
    --gradient_accumulation_steps 4 \
    --learning_rate 2e-5 --fp16 True \
    --deepspeed ds_config.json
