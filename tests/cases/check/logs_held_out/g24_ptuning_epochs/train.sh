PRE_SEQ_LEN=128
CUDA_VISIBLE_DEVICES=0 python3 main.py --do_train --train_file data.json --num_train_epochs 3 --max_steps 3000 --per_device_train_batch_size 10 --gradient_accumulation_steps 16 --learning_rate 2e-2 --logging_steps 10
