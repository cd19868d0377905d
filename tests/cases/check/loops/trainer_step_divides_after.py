# expect: mistake divide_after_backward
from transformers import Trainer

class PerturbedTrainer(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = model(**inputs).loss
        self.accelerator.backward(loss)
        self.perturb(model)
        return loss.detach() / self.args.gradient_accumulation_steps
