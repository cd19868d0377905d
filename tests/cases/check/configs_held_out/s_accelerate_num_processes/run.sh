accelerate launch --config_file default_config.yaml train_text_to_image.py --train_batch_size=1 --gradient_accumulation_steps=16 --max_train_steps=15000 --learning_rate=1e-05
