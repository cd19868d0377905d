GLOBAL=256
PER_DEVICE=8
GPUS=8
torchrun --nproc_per_node $GPUS run_glue.py --per_device_train_batch_size $PER_DEVICE --gradient_accumulation_steps $((GLOBAL / PER_DEVICE / GPUS)) --num_train_epochs 3
