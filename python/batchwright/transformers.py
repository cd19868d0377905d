"""For a Trainer whose optimizer the hook cannot see (DeepSpeed's, Apex's): Trainer(..., callbacks=[BatchwrightCallback()])."""
from transformers import TrainerCallback

from .steps import step


class BatchwrightCallback(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        step()
