# expect: ok
import torch
from transformers import Trainer


class ShiftTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits = outputs.logits[..., :-1, :].contiguous().float()
        targets = labels[..., 1:].contiguous().to(logits.device)
        reduction = "sum" if num_items_in_batch is not None else "mean"
        loss = torch.nn.functional.cross_entropy(
            logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-100, reduction=reduction)
        if reduction == "sum":
            if torch.is_tensor(num_items_in_batch):
                num_items_in_batch = num_items_in_batch.to(loss.device)
            loss = loss / num_items_in_batch
        return (loss, outputs) if return_outputs else loss
