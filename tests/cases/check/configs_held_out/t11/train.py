from transformers import Seq2SeqTrainingArguments
args = Seq2SeqTrainingArguments(
    output_dir="t5",
    per_device_train_batch_size=8,
    gradient_accumulation_steps=4,
    learning_rate=1e-4,
)
