# expect: mistake custom_loss_bypass
import torch
import torch.nn.functional as F
from transformers import Trainer, TrainingArguments


class DistillTrainer(Trainer):
    def __init__(self, teacher, temperature=2.0, alpha=0.5, **kwargs):
        super().__init__(**kwargs)
        self.teacher = teacher.eval()
        self.temperature = temperature
        self.alpha = alpha

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        with torch.no_grad():
            t_logits = self.teacher(**inputs).logits
        kd = F.kl_div(F.log_softmax(outputs.logits / self.temperature, -1),
                      F.softmax(t_logits / self.temperature, -1), reduction="batchmean") * self.temperature ** 2
        loss = self.alpha * outputs.loss + (1 - self.alpha) * kd
        return (loss, outputs) if return_outputs else loss


training_args = TrainingArguments(output_dir="kd", gradient_accumulation_steps=8, per_device_train_batch_size=4)
trainer = DistillTrainer(teacher=teacher, model=student, args=training_args, train_dataset=ds)
trainer.train()
