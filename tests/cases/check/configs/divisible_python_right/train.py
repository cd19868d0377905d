from transformers import TrainingArguments
BATCH_SIZE = 128
MICRO_BATCH_SIZE = 4
ACCUM = BATCH_SIZE // MICRO_BATCH_SIZE
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=MICRO_BATCH_SIZE,
    gradient_accumulation_steps=ACCUM,
    warmup_steps=100,
    num_train_epochs=3,
)
