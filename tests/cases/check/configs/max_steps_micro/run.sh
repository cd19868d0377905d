NUM_EXAMPLES=20000
EPOCHS=3
BS=4
STEPS=$((NUM_EXAMPLES * EPOCHS / BS))
python train.py --per_device_train_batch_size $BS --gradient_accumulation_steps 16 --max_steps $STEPS --num_train_epochs $EPOCHS
