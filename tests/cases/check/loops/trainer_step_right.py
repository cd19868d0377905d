# expect: ok
from transformers import Trainer

class PerturbedTrainer(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = model(**inputs).loss
        loss = loss / self.args.gradient_accumulation_steps
        self.accelerator.backward(loss)
        self.perturb(model)
        return loss.detach()
