# 10,000 images, 1 GPU, 10 epochs
accelerate launch --num_processes 1 train_text_to_image.py --train_batch_size 4 --gradient_accumulation_steps 8 --max_train_steps 3130 --learning_rate 1e-5 --lr_warmup_steps 100
