# expect: ok
import torch
from torch import nn
from transformers import Trainer


class MultilabelTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = nn.BCEWithLogitsLoss()(outputs.logits, labels.float())
        return (loss, outputs) if return_outputs else loss
