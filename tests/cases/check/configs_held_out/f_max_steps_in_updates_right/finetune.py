from transformers import TrainingArguments

num_examples = 12000
epochs = 3
batch_size = 4
accumulation = 8
steps = num_examples // (batch_size * accumulation) * epochs
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=batch_size,
    gradient_accumulation_steps=accumulation,
    max_steps=steps,
    learning_rate=1e-4,
    warmup_ratio=0.05,
)
