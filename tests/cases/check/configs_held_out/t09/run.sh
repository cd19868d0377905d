deepspeed --num_gpus=4 nvidia_run_squad_deepspeed.py --train_batch_size 8 --do_train --deepspeed --deepspeed_config ds.json --num_train_epochs 2 --learning_rate 3e-5
