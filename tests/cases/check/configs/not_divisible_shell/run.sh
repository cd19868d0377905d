GLOBAL_BATCH=128
MICRO=6
NGPU=4
ACCUM=$((GLOBAL_BATCH / (MICRO * NGPU)))
torchrun --nproc_per_node=$NGPU train.py --per_device_train_batch_size $MICRO --gradient_accumulation_steps $ACCUM
