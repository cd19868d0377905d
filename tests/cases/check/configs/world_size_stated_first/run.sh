# effective batch 32 = 8 x 2 x 2 GPUs
torchrun --nproc_per_node 4 finetune.py \
  --per_device_train_batch_size 8 --gradient_accumulation_steps 2 --learning_rate 2e-5 --num_train_epochs 2
