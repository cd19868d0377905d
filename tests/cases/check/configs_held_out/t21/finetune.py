from transformers import TrainingArguments
num_examples = 24000
per_device = 8
accum = 4
epochs = 3
steps = num_examples * epochs // (per_device * accum)
args = TrainingArguments("out", per_device_train_batch_size=per_device, gradient_accumulation_steps=accum, max_steps=steps, warmup_steps=steps // 20)
