# expect: ok
class T(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        outputs = model(**inputs)
        logits = outputs.logits[..., :-1, :]
        losses = F.cross_entropy(logits.transpose(1, 2), labels[..., 1:], reduction="none")
        if num_items_in_batch is None:
            num_items_in_batch = (labels[..., 1:] != -100).sum()
        loss = losses.sum() / num_items_in_batch
        if self.args.average_tokens_across_devices:
            loss = loss * self.accelerator.num_processes
        return (loss, outputs) if return_outputs else loss
