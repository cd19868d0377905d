NUM_SAMPLES=64000
BATCH=4
ACCUM=4
EPOCHS=2
NPROC=8
TOTAL_STEPS=$(( NUM_SAMPLES * EPOCHS / (BATCH * ACCUM) ))
torchrun --nproc_per_node $NPROC train.py --per_device_train_batch_size $BATCH --gradient_accumulation_steps $ACCUM --max_steps $TOTAL_STEPS --num_train_epochs $EPOCHS
