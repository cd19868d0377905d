# expect: mistake custom_loss_bypass
import torch
import torch.nn.functional as F
from transformers import Trainer


class HierarchicalTrainer(Trainer):
    def __init__(self, class_weights=None, teacher_forcing_ratio=0.5, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights
        self.teacher_forcing_ratio = teacher_forcing_ratio
        if class_weights is not None:
            self.class_weights = class_weights.to(self.args.device)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None, **kwargs):
        labels = inputs.pop("labels")
        forcing = model.training and (torch.rand(1).item() < self.teacher_forcing_ratio)
        outputs = model(**inputs, labels=None, teacher_forcing=forcing)
        logits = outputs.logits
        if self.class_weights is not None and model.config.use_weighted_loss:
            if model.config.use_focal_loss:
                ce = F.cross_entropy(logits, labels, weight=self.class_weights, reduction="none")
                pt = torch.exp(-ce)
                loss = ((1 - pt) ** model.config.focal_gamma * ce).mean()
            else:
                loss = F.cross_entropy(logits, labels, weight=self.class_weights)
        else:
            loss = F.cross_entropy(logits, labels)
        return (loss, outputs) if return_outputs else loss
