# expect: mistake custom_loss_bypass
import numpy as np
import torch
import torch.nn.functional as F
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments

MODEL = "answerdotai/ModernBERT-base"


class FocalLossTrainer(Trainer):
    def __init__(self, *args, class_weights=None, gamma=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights
        self.gamma = gamma

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits = outputs.logits
        ce = F.cross_entropy(logits, labels, weight=self.class_weights.to(logits.device), reduction="none")
        pt = torch.exp(-ce)
        loss = ((1 - pt) ** self.gamma * ce).mean()
        return (loss, outputs) if return_outputs else loss


def main():
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    ds = load_dataset("ag_news").map(lambda b: tokenizer(b["text"], truncation=True), batched=True)
    model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=4)
    args = TrainingArguments(
        output_dir="out", per_device_train_batch_size=8, gradient_accumulation_steps=4, learning_rate=2e-5,
        num_train_epochs=3, eval_strategy="epoch", bf16=True, logging_steps=50)
    trainer = FocalLossTrainer(model=model, args=args, train_dataset=ds["train"], eval_dataset=ds["test"],
                               data_collator=DataCollatorWithPadding(tokenizer), class_weights=torch.ones(4))
    trainer.train()


if __name__ == "__main__":
    main()
