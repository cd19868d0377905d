# expect: mistake divide_after_backward
from transformers import Trainer


class PrunedTrainer(Trainer):
    model_accepts_loss_kwargs = False

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
            loss = loss + self.args.l1 * sum(p.abs().sum() for p in model.gates())
        self.accelerator.backward(loss)
        if self.args.gradient_accumulation_steps > 1:
            loss = loss / self.args.gradient_accumulation_steps
        return loss.detach()
