import os
from transformers import TrainingArguments, Trainer

BATCH_SIZE = 128
MICRO_BATCH_SIZE = 4
GRADIENT_ACCUMULATION_STEPS = BATCH_SIZE // MICRO_BATCH_SIZE
world_size = int(os.environ.get("WORLD_SIZE", 1))
if world_size != 1:
    GRADIENT_ACCUMULATION_STEPS = GRADIENT_ACCUMULATION_STEPS // world_size

args = TrainingArguments(
    per_device_train_batch_size=MICRO_BATCH_SIZE,
    gradient_accumulation_steps=GRADIENT_ACCUMULATION_STEPS,
    warmup_steps=100,
    num_train_epochs=3,
    learning_rate=3e-4,
    output_dir="lora-alpaca",
)
trainer = Trainer(model=model, train_dataset=train_data, args=args)
trainer.train()
