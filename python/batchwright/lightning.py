"""For a module that steps its optimizers by hand: lightning.Trainer(..., callbacks=[BatchwrightCallback()])."""
from lightning import Callback

from .steps import step


class BatchwrightCallback(Callback):
    def __init__(self):
        self.steps = 0

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_index):
        if trainer.global_step != self.steps:
            self.steps = trainer.global_step
            step()
