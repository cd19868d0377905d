from transformers import TrainingArguments

OUTPUT_DIR = "modelo"


def argumentos():
    return TrainingArguments(
        output_dir=OUTPUT_DIR,
        num_train_epochs=3,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,  # batch efetivo = 16
        optim="paged_adamw_32bit",
        learning_rate=2e-4,
        lr_scheduler_type="cosine",
        warmup_ratio=0.03,
        logging_steps=10,
        save_strategy="epoch",
        fp16=True,
        bf16=False,
        max_grad_norm=0.3,
        group_by_length=True,
    )
