deepspeed --num_gpus 7 --module openrlhf.cli.train_sft \
   --max_len 2048 --dataset Open-Orca/OpenOrca \
   --train_batch_size 256 --micro_train_batch_size 2 \
   --zero_stage 2 --max_epochs 1 --learning_rate 5e-6
