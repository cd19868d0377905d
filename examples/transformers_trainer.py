"""Transformers' Trainer on a sequence classifier such as MiniLM, with LoRA (PEFT) when --lora names a rank.

    batchwright verify --effective-batch 32 -- python examples/transformers_trainer.py MODEL \
        --per_device_train_batch_size {micro} --gradient_accumulation_steps {accum} --output_dir {scratch}
"""
import argparse

import transformers
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding

parser = argparse.ArgumentParser()
parser.add_argument("model", help="a folder in Hugging Face layout")
parser.add_argument("--per_device_train_batch_size", type=int, default=8)
parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
parser.add_argument("--output_dir", required=True)
parser.add_argument("--max_steps", type=int, default=100)
parser.add_argument("--lora", type=int, default=0, help="rank of the adapters; 0: train everything")
parser.add_argument("--divide_by_hand", action="store_true", help="let the Trainer divide the loss, whatever the model")
args = parser.parse_args()

transformers.set_seed(0)
words = "a fine film with a slow start and an end that nobody in the room had seen coming at all".split()
texts = [" ".join(words[: 4 + row % 16]) + f", says viewer {row}" for row in range(512)]
tokenizer = AutoTokenizer.from_pretrained(args.model)
rows = [dict(tokenizer(text), labels=row % 2) for row, text in enumerate(texts)]
model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2)
if args.lora:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(model, LoraConfig(r=args.lora, task_type="SEQ_CLS", target_modules=["query", "value"]))
trainer = transformers.Trainer(
    model=model, train_dataset=rows, data_collator=DataCollatorWithPadding(tokenizer),
    args=transformers.TrainingArguments(
        output_dir=args.output_dir, per_device_train_batch_size=args.per_device_train_batch_size,
        gradient_accumulation_steps=args.gradient_accumulation_steps, max_steps=args.max_steps, learning_rate=5e-4,
        save_strategy="no", report_to=[], use_cpu=True))
if args.divide_by_hand:
    trainer.model_accepts_loss_kwargs = False
trainer.train()
