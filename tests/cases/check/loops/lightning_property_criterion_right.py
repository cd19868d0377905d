# expect: ok
import lightning as L
import torch


class Net(L.LightningModule):
    def __init__(self, predictor):
        super().__init__()
        self.predictor = predictor

    @property
    def criterion(self):
        return self.predictor.criterion

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.criterion(self.predictor(x), y)
        self.log("train_loss", self.criterion)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
