# expect: ok
import torch.nn.functional as F
from transformers import Trainer


class AttackTrainer(Trainer):
    def _ce(self, logits, labels):
        return F.cross_entropy(logits, labels, label_smoothing=0.1)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None, **kwargs):
        labels = inputs.pop("labels")
        out = model(**inputs)
        loss = self._ce(out.logits, labels) + 0.1 * out.aux_loss
        return (loss, out) if return_outputs else loss

    def training_step(self, model, inputs, num_items_in_batch=None, **kwargs):
        model.train()
        inputs = self._prepare_inputs(inputs)
        labels = inputs["labels"].clone()
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
        if self.args.gradient_accumulation_steps > 1:
            loss = loss / self.args.gradient_accumulation_steps
        self.accelerator.backward(loss)
        fgm = FGM(model)
        fgm.attack(epsilon=0.5)
        inputs["labels"] = labels
        with self.compute_loss_context_manager():
            loss_adv = self.compute_loss(model, inputs)
        if self.args.gradient_accumulation_steps > 1:
            loss_adv = loss_adv / self.args.gradient_accumulation_steps
        self.accelerator.backward(loss_adv)
        fgm.restore()
        return loss.detach()
