deepspeed --num_gpus 4 train.py --deepspeed --deepspeed_config ds.json --max_steps 5000
