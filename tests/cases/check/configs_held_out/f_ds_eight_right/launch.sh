deepspeed --num_gpus 8 --master_port 29501 train.py --deepspeed --deepspeed_config zero3.json --epochs 2
