# expect: ok
import logging

import torch.distributed as dist
from transformers.trainer import Trainer

logger = logging.getLogger(__name__)


class RetrievalTrainer(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.is_ddp = dist.is_initialized()
        self._dist_loss_scale_factor = dist.get_world_size() if self.is_ddp else 1

    def _prepare_inputs(self, inputs):
        return [super(RetrievalTrainer, self)._prepare_inputs(x) for x in inputs]

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None, **kwargs):
        query, passage = inputs
        output = model(query=query, passage=passage)
        loss = output.loss
        return (loss, output) if return_outputs else loss

    def training_step(self, *args, **kwargs):
        loss = super(RetrievalTrainer, self).training_step(*args, **kwargs)
        return loss / self._dist_loss_scale_factor
