# expect: mistake aux_loss_unscaled
class MoeTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs, output_router_logits=True)
        nll = F.cross_entropy(outputs.logits.flatten(0, 1), inputs["labels"].flatten(), reduction="sum")
        loss = nll / num_items_in_batch
        loss = loss + self.aux_coef * load_balancing_loss_func(outputs.router_logits)
        return (loss, outputs) if return_outputs else loss
