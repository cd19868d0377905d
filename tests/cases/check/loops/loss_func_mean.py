# expect: mistake custom_loss_bypass
from torch import nn
from transformers import Trainer, TrainingArguments


class Weighted:
    def __init__(self, weights):
        self.criterion = nn.CrossEntropyLoss(weight=weights)

    def __call__(self, outputs, labels, num_items_in_batch=None):
        return self.criterion(outputs.logits, labels)


def train(net, data, weights):
    def balanced(outputs, labels, num_items_in_batch=None):
        return Weighted(weights)(outputs, labels)

    args = TrainingArguments("out", gradient_accumulation_steps=8)
    trainer = Trainer(model=net, args=args, train_dataset=data, compute_loss_func=balanced)
    trainer.train()
