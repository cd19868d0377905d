deepspeed --include localhost:0,1 --master_port 29501 pretrain.py --deepspeed_config conf/ds.json
