# expect: note tail_full_divisor
import lightning as L

class Tagger(L.LightningModule):
    def __init__(self, encoder, accumulate=4):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = encoder
        self.accumulate = accumulate

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        loss = self.encoder(**batch).loss
        self.manual_backward(loss / self.accumulate)
        if (batch_idx + 1) % self.accumulate == 0 or self.trainer.is_last_batch:
            optimizer.step()
            optimizer.zero_grad()
            self.lr_schedulers().step()
        self.log("train/loss", loss)
