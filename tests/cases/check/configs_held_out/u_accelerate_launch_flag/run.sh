accelerate launch --multi_gpu --num_processes 4 --gradient_accumulation_steps 8 run_clm_no_trainer.py --per_device_train_batch_size 4 --num_train_epochs 3 --learning_rate 5e-5
