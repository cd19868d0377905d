python -m torch.distributed.run --nproc_per_node 4 train.py --deepspeed ds.json --per_device_train_batch_size 4 --gradient_accumulation_steps 1 --learning_rate 1e-5
