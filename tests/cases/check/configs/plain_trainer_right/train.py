from transformers import Trainer, TrainingArguments
training_args = TrainingArguments(
    output_dir="./results",
    num_train_epochs=3,
    per_device_train_batch_size=16,
    per_device_eval_batch_size=64,
    gradient_accumulation_steps=2,
    warmup_ratio=0.06,
    weight_decay=0.01,
    logging_steps=10,
)
trainer = Trainer(model=model, args=training_args, train_dataset=train)
trainer.train()
