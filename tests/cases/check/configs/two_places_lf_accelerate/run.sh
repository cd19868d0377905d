accelerate launch --config_file ./fsdp.yml src/train_sft.py \
    --do_train --finetuning_type full --stage sft \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 2 \
    --max_grad_norm 0.5 --learning_rate 5e-5
