# expect: mistake custom_loss_bypass
import torch.nn.functional as F
from transformers import Trainer, TrainingArguments


class ResponseTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None, **kwargs):
        outputs = model(**inputs)
        logits = outputs.logits
        labels = inputs.get("labels")
        shift_logits = logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        task_loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1), ignore_index=-100)
        if self.state.global_step % self.args.logging_steps == 0:
            print(f"step {self.state.global_step}: {task_loss.item():.4f}")
        return (task_loss, outputs) if return_outputs else task_loss


def main(model, train_set, tokenizer):
    arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=8, num_train_epochs=3)
    ResponseTrainer(model=model, args=arguments, train_dataset=train_set, processing_class=tokenizer).train()
