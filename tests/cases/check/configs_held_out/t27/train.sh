# 64000 samples, 1 epoch, 4 gpus
export CUDA_VISIBLE_DEVICES=0,1,2,3
deepspeed train.py --deepspeed_config ds.json
