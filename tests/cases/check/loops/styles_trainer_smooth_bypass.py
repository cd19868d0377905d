# expect: mistake custom_loss_bypass
import torch
from transformers import Seq2SeqTrainer


class FocalTrainer(Seq2SeqTrainer):
    gamma = 2.0

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.get("labels")
        outputs = model(**inputs)
        logp = torch.log_softmax(outputs.logits, dim=-1)
        nll = -logp.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        weight = (1 - (-nll).exp()) ** self.gamma
        mask = labels != -100
        loss = (weight * nll * mask).sum() / mask.sum()
        return (loss, outputs) if return_outputs else loss
