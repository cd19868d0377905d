import transformers
global_bs = 100
micro_bs = 8
accum = global_bs // micro_bs
args = transformers.TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=micro_bs,
    gradient_accumulation_steps=accum,
    num_train_epochs=1,
)
