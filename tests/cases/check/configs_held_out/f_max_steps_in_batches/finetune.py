from datasets import load_dataset
from transformers import TrainingArguments

num_examples = 12000
epochs = 3
batch_size = 4
# three passes over the data
steps = num_examples // batch_size * epochs
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=batch_size,
    gradient_accumulation_steps=8,
    max_steps=steps,
    learning_rate=1e-4,
    warmup_ratio=0.05,
)
