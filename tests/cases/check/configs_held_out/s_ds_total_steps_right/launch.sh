# 60,000 examples, 2 epochs
deepspeed --num_gpus 8 train.py --deepspeed_config ds.json --epochs 2
