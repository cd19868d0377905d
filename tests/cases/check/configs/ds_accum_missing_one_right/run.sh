deepspeed --num_gpus 4 main.py --deepspeed --deepspeed_config ds.json
