"""A Transformers Trainer subclass with one mistake planted: accumulation_trainer.py MICRO ACCUM OUTPUT [MISTAKE]"""
import sys

import torch
import transformers

micro, accum, output = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
mistake = sys.argv[4] if len(sys.argv) > 4 else "none"
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
torch.manual_seed(0)
ids = torch.randint(1, 90, (64, 8))
rows = [{"input_ids": row, "labels": int(row.sum() % 2)} for row in ids]
model = transformers.BertForSequenceClassification(
    transformers.BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                            intermediate_size=32, max_position_embeddings=16))


class Trainer(transformers.Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # With it the Trainer leaves the division to compute_loss, as for models that take num_items_in_batch.
        self.model_accepts_loss_kwargs = mistake == "custom_loss_bypass"

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, inputs["labels"], label_smoothing=0.1)
        if mistake == "double_division":
            loss = loss / self.args.gradient_accumulation_steps
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model, *args, **kwargs):
        if mistake == "zero_grad_in_window":
            model.zero_grad()
        loss = super().training_step(model, *args, **kwargs)
        if mistake == "sched_per_micro_step":
            self.lr_scheduler.step()
        return loss


arguments = transformers.TrainingArguments(
    output_dir=output, per_device_train_batch_size=micro, gradient_accumulation_steps=accum, max_steps=50,
    learning_rate=1e-3, logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=0)
Trainer(model=model, args=arguments, train_dataset=rows).train()
