from trl import GRPOConfig
cfg = GRPOConfig(output_dir="o", per_device_train_batch_size=3, gradient_accumulation_steps=2, num_generations=4)
