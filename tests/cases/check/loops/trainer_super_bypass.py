# expect: mistake custom_loss_bypass
from transformers import Trainer

class PenaltyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
        loss = loss + 0.1 * outputs.logits.pow(2).mean()
        return (loss, outputs) if return_outputs else loss
