from transformers import AutoConfig, GPTNeoXForCausalLM, TrainingArguments
# a model from scratch: random init, vocabulary 50304
vocab_size = 50304
from_scratch = 1
args = TrainingArguments(output_dir="o", per_device_train_batch_size=8, gradient_accumulation_steps=1, num_train_epochs=1, warmup_steps=4, learning_rate=1e-4)
