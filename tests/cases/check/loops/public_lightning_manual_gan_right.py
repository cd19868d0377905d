# expect: ok
import pytorch_lightning as pl
import torch


class VQGAN(pl.LightningModule):
    def __init__(self, ae, disc, loss, accumulate=4):
        super().__init__()
        self.automatic_optimization = False
        self.ae, self.disc, self.loss = ae, disc, loss
        self.accumulate = accumulate

    def training_step(self, batch, batch_idx):
        opt_ae, opt_disc = self.optimizers()
        boundary = (batch_idx + 1) % self.accumulate == 0 or self.trainer.is_last_batch

        self.toggle_optimizer(opt_ae)
        rec, emb_loss = self.ae(batch)
        ae_loss = self.loss.generator(batch, rec, self.disc(rec)) + emb_loss
        self.manual_backward(ae_loss / self.accumulate)
        if boundary:
            opt_ae.step()
            opt_ae.zero_grad()
        self.untoggle_optimizer(opt_ae)

        self.toggle_optimizer(opt_disc)
        d_loss = self.loss.discriminator(self.disc(batch), self.disc(rec.detach()))
        self.manual_backward(d_loss / self.accumulate)
        if boundary:
            opt_disc.step()
            opt_disc.zero_grad()
        self.untoggle_optimizer(opt_disc)
        self.log_dict({"ae": ae_loss, "d": d_loss})

    def configure_optimizers(self):
        return (torch.optim.Adam(self.ae.parameters(), 4.5e-6), torch.optim.Adam(self.disc.parameters(), 4.5e-6))
