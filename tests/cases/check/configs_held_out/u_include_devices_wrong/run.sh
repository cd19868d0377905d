deepspeed --include localhost:0,1,2 pretrain.py --deepspeed_config ds.json
