torchrun --standalone --nproc_per_node=6 train.py train_small.py
