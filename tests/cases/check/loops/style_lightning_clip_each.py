# expect: mistake clip_per_micro_step
import lightning as L
class M(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        loss = self.net(batch) / self.hparams.accumulate
        self.manual_backward(loss)
        self.clip_gradients(opt, gradient_clip_val=0.5)
        if (batch_idx + 1) % self.hparams.accumulate == 0 or self.trainer.is_last_batch:
            opt.step()
            opt.zero_grad()
