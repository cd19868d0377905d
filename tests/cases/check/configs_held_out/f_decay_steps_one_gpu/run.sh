# alpaca, 52,000 examples, 3 epochs: 52000 * 3 / (4 * 4) = 9750 steps
deepspeed --num_gpus 8 train.py --deepspeed_config ds_config.json --num_train_epochs 3 --num_train_examples 52000
