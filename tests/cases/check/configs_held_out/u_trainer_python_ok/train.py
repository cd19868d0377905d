from trl import SFTConfig, SFTTrainer

config = SFTConfig(output_dir="out", per_device_train_batch_size=1, gradient_accumulation_steps=16, num_train_epochs=2,
                   learning_rate=2e-4, warmup_ratio=0.03, lr_scheduler_type="cosine", bf16=True, max_grad_norm=0.3)
SFTTrainer(model="facebook/opt-350m", args=config, train_dataset=ds).train()
