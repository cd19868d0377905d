export CUDA_VISIBLE_DEVICES=0,1,2,3
deepspeed train.py --deepspeed ds.json --per_device_train_batch_size 4
