# expect: mistake custom_loss_bypass
import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import Trainer


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=None, ignore_index=-100, reduction="mean"):
        super().__init__()
        self.gamma, self.alpha, self.ignore_index, self.reduction = gamma, alpha, ignore_index, reduction

    def forward(self, logits, targets):
        keep = targets.view(-1) != self.ignore_index
        logits, targets = logits.view(-1, logits.size(-1))[keep], targets.view(-1)[keep]
        log_pt = F.log_softmax(logits, dim=-1).gather(1, targets.unsqueeze(1)).squeeze(1)
        loss = -((1 - log_pt.exp()) ** self.gamma) * log_pt
        return loss.mean() if self.reduction == "mean" else loss.sum()


class FocalLossTrainer(Trainer):
    def __init__(self, *args, focal_gamma=2.0, focal_alpha=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.focal_loss = FocalLoss(gamma=focal_gamma, alpha=focal_alpha, ignore_index=-100)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None, **kwargs):
        labels = inputs.pop("labels", None)
        if labels is None:
            labels = inputs.pop("label")
        outputs = model(**inputs)
        logits = outputs.logits
        loss = self.focal_loss(logits, labels)
        return (loss, outputs) if return_outputs else loss
