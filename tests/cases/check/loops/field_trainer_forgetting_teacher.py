# expect: mistake custom_loss_bypass
import torch
import torch.nn.functional as F
from transformers import Seq2SeqTrainer, WhisperForConditionalGeneration


class LwFTrainer(Seq2SeqTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if getattr(self.args, "old_model_name", None):
            self.old_model = WhisperForConditionalGeneration.from_pretrained(self.args.old_model_name).to(self.args.device)
            for param in self.old_model.parameters():
                param.requires_grad = False
            self.old_model.eval()
        else:
            self.old_model = None

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        new_logits = outputs.logits
        new_loss = outputs.loss
        if self.old_model:
            old_inputs = inputs.copy()
            old_inputs.pop("accent_id", None)
            with torch.no_grad():
                old_logits = self.old_model(**old_inputs).logits
            T = self.args.temp_lwf
            alpha = self.args.alpha_lwf
            p_old = F.softmax(old_logits / T, dim=-1)
            p_new = F.log_softmax(new_logits / T, dim=-1)
            distill_loss = F.kl_div(p_new, p_old, reduction="batchmean") * (T * T)
            loss = alpha * new_loss + (1 - alpha) * distill_loss
        else:
            loss = new_loss
        return (loss, outputs) if return_outputs else loss
