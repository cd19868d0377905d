# expect: mistake aux_loss_unscaled
import torch.nn.functional as F
from transformers import Trainer, TrainingArguments

from parts import data, net


def objective(outputs, labels, num_items_in_batch=None):
    flat = F.cross_entropy(outputs.logits.flatten(0, 1), labels.flatten(), reduction="sum")
    loss = flat / num_items_in_batch
    return loss + 0.01 * outputs.router_aux_loss


args = TrainingArguments("out", gradient_accumulation_steps=8, per_device_train_batch_size=2)
Trainer(net, args, train_dataset=data, compute_loss_func=objective).train()
