# expect: ok
import torch
from transformers import Trainer, TrainingArguments


class AspectTrainer(Trainer):
    def __init__(self, *args, class_weights=None, label_smoothing=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.bce_loss = torch.nn.BCEWithLogitsLoss()

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None, **kwargs):
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        total_loss = 0.0
        for aspect, logits in outputs.items():
            label_key = f"labels_{aspect}"
            if label_key in inputs:
                targets = inputs[label_key]
                loss = self.bce_loss(logits, targets)
                total_loss += loss
        if return_outputs:
            return total_loss, outputs["F"]
        return total_loss


def main(model, train_set):
    arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=4)
    AspectTrainer(model=model, args=arguments, train_dataset=train_set).train()
