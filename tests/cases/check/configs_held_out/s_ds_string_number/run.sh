deepspeed --num_gpus 4 pretrain.py --deepspeed_config ds.json
