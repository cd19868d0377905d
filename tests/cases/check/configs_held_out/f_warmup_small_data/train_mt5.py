from datasets import load_dataset
from transformers import MT5ForConditionalGeneration, Seq2SeqTrainer, Seq2SeqTrainingArguments

# en2zh: 1,800 training examples
train = load_dataset("json", data_files="train.json")["train"].select(range(1800))
model = MT5ForConditionalGeneration.from_pretrained("google/mt5-small")
training_args = Seq2SeqTrainingArguments(
    output_dir="./experiments/t5_en2zh",
    num_train_epochs=5,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=8,
    learning_rate=3e-5,
    warmup_steps=500,
    weight_decay=0.01,
    logging_steps=100,
    save_strategy="steps",
    save_steps=500,
)
trainer = Seq2SeqTrainer(model=model, args=training_args, train_dataset=train)
trainer.train()
