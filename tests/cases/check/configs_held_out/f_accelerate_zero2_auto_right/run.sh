accelerate launch --config_file accelerate_config_zero2.yaml --main_process_port 60001 mmrec.py \
--pretrained_model_name_or_path=facebook/opt-1.3b \
--batch_size=4 \
--num_epochs=50 \
--gradient_accumulation_steps=8 \
--lr_scheduler=constant \
--learning_rate=1e-4
