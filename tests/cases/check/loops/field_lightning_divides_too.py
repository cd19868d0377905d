# expect: mistake double_division
import pytorch_lightning as pl
import torch
from transformers import AutoModelForCausalLM


class ChatModule(pl.LightningModule):
    def __init__(self, name, lr):
        super().__init__()
        self.save_hyperparameters()
        self.model = AutoModelForCausalLM.from_pretrained(name)

    def forward(self, **inputs):
        return self.model(**inputs)

    def training_step(self, batch, batch_idx):
        outputs = self(**batch)
        loss = outputs.loss
        self.log("train_loss", loss, prog_bar=True, sync_dist=True)
        loss = loss / self.trainer.accumulate_grad_batches
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self(**batch).loss, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


trainer = pl.Trainer(max_epochs=3, accelerator="gpu", devices=1, precision="bf16-mixed", accumulate_grad_batches=8)
trainer.fit(ChatModule("gpt2", 2e-5), datamodule=dm)
