# expect: ok
from transformers import Trainer, TrainingArguments
import torch.nn.functional as F


def loss_fn(outputs, labels, num_items_in_batch=None):
    logits = outputs["logits"][:, :-1].flatten(0, 1)
    loss = F.cross_entropy(logits, labels[:, 1:].flatten(), reduction="sum", ignore_index=-100)
    return loss / num_items_in_batch


args = TrainingArguments("out", per_device_train_batch_size=4, gradient_accumulation_steps=8)
trainer = Trainer(model=model, args=args, train_dataset=ds, compute_loss_func=loss_fn)
trainer.train()
