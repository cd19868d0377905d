export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
python train_ds.py --deepspeed --deepspeed_config ds_config.json
