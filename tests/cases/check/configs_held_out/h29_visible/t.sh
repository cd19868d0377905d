export CUDA_VISIBLE_DEVICES=0,1
torchrun --standalone --nproc_per_node=4 train.py --per_device_train_batch_size 8 --gradient_accumulation_steps 2
