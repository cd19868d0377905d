from transformers import TrainingArguments
args = TrainingArguments(output_dir="o", learning_rate=2e-5, per_device_train_batch_size=4, gradient_accumulation_steps=2, deepspeed="ds.json")
