# expect: mistake world_size_rescale_cargo
from transformers import Trainer

class DistillTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        student = model(**inputs)
        with torch.no_grad():
            teacher = self.teacher(**inputs)
        loss = distance(student.logits, teacher.logits)
        loss = loss / self.args.gradient_accumulation_steps
        loss = loss * self.accelerator.num_processes
        return (loss, student) if return_outputs else loss
