# expect: ok
import torch
import torch.nn.functional as F
from transformers import Trainer


class PairwiseTrainer(Trainer):
    def __init__(self, *args, margin=0.2, **kwargs):
        super().__init__(*args, **kwargs)
        self.margin = margin
        self.model_accepts_loss_kwargs = False

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        chosen = model(input_ids=inputs["chosen_ids"], attention_mask=inputs["chosen_mask"]).logits
        rejected = model(input_ids=inputs["rejected_ids"], attention_mask=inputs["rejected_mask"]).logits
        loss = -F.logsigmoid(chosen - rejected - self.margin).mean()
        if return_outputs:
            return loss, {"chosen": chosen, "rejected": rejected}
        return loss
