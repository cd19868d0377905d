torchrun --nproc_per_node=8 train.py \
    --per_device_train_batch_size 8 \
    --gradient_accumulation_steps 4 \
    --learning_rate 2e-5 --max_grad_norm 0.5 \
    --deepspeed ds_config.json
