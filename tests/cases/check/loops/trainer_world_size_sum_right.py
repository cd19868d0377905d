# expect: ok
from transformers import Trainer

class DistillTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        student = model(**inputs)
        loss = distance(student.logits, inputs["labels"], reduction="sum") / num_items_in_batch
        loss = loss * self.accelerator.num_processes
        return (loss, student) if return_outputs else loss
