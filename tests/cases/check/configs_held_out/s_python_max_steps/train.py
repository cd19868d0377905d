from datasets import load_dataset
from transformers import Trainer, TrainingArguments

train = load_dataset("imdb", split="train")  # 25,000 examples
epochs = 3
batch_size = 8
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=batch_size,
    gradient_accumulation_steps=8,
    max_steps=25000 * epochs // batch_size,
    learning_rate=2e-5,
)
Trainer(model=model, args=args, train_dataset=train).train()
