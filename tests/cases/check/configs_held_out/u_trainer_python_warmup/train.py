from datasets import load_dataset
from transformers import Trainer, TrainingArguments

ds = load_dataset("json", data_files="train.json", split="train")  # 2,400 examples
args = TrainingArguments(output_dir="out", per_device_train_batch_size=8, gradient_accumulation_steps=4,
                         num_train_epochs=3, warmup_steps=500, learning_rate=5e-5)
Trainer(model=model, args=args, train_dataset=ds).train()
