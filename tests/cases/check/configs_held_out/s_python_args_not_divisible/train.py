from transformers import TrainingArguments, Trainer

BATCH_SIZE = 100
MICRO_BATCH_SIZE = 8
args = TrainingArguments(
    per_device_train_batch_size=MICRO_BATCH_SIZE,
    gradient_accumulation_steps=BATCH_SIZE // MICRO_BATCH_SIZE,
    num_train_epochs=3,
    learning_rate=3e-4,
    output_dir="out",
)
Trainer(model=model, args=args, train_dataset=ds).train()
