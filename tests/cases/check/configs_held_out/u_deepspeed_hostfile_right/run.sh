deepspeed --hostfile hostfile --num_nodes 2 --num_gpus 8 pretrain.py --deepspeed --deepspeed_config ds.json
