from transformers import MT5ForConditionalGeneration, Seq2SeqTrainer, Seq2SeqTrainingArguments

# en2zh: 18,000 training examples
model = MT5ForConditionalGeneration.from_pretrained("google/mt5-small")
training_args = Seq2SeqTrainingArguments(
    output_dir="./experiments/t5_en2zh",
    num_train_epochs=5,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=8,
    learning_rate=3e-5,
    warmup_steps=500,
    weight_decay=0.01,
)
