python -m torch.distributed.launch --nproc_per_node=8 train.py data=c4 model.global_batch_size=100 model.micro_batch_size=4 trainer.max_steps=10000
