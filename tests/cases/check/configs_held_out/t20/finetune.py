from transformers import TrainingArguments
num_examples = 24000
per_device = 8
accum = 4
epochs = 3
steps = num_examples * epochs // per_device
args = TrainingArguments("out", per_device_train_batch_size=per_device, gradient_accumulation_steps=accum, num_train_epochs=epochs, max_steps=steps)
