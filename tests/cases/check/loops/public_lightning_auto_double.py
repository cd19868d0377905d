# expect: mistake double_division
import pytorch_lightning as pl
import torch
from torch import nn


class Segmenter(pl.LightningModule):
    def __init__(self, net, hparams):
        super().__init__()
        self.net = net
        self.save_hyperparameters(hparams)
        self.criterion = nn.CrossEntropyLoss(ignore_index=255)

    def training_step(self, batch, batch_idx):
        logits = self.net(batch["image"])
        loss = self.criterion(logits, batch["mask"])
        loss = loss / self.trainer.accumulate_grad_batches
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


def main(cfg):
    trainer = pl.Trainer(max_epochs=cfg.epochs, accumulate_grad_batches=cfg.accumulate_grad_batches)
    trainer.fit(Segmenter(make_net(cfg), cfg), datamodule=make_data(cfg))
