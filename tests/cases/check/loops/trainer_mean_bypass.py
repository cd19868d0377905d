# expect: mistake custom_loss_bypass
from transformers import Trainer

class FocalTrainer(Trainer):
    def __init__(self, *args, gamma=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.gamma = gamma

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        token = torch.nn.functional.cross_entropy(outputs.logits.flatten(0, 1), labels.flatten(), reduction="none")
        focal = (1 - torch.exp(-token)) ** self.gamma * token
        loss = focal.mean()
        return (loss, outputs) if return_outputs else loss
