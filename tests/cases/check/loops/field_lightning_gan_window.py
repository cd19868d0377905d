# expect: ok
import torch
import torch.nn.functional as F
import lightning as L


class VocoderGAN(L.LightningModule):
    def __init__(self, generator, discriminator, accumulate=4, lr=2e-4):
        super().__init__()
        self.automatic_optimization = False
        self.generator = generator
        self.discriminator = discriminator
        self.accumulate = accumulate
        self.lr = lr

    def configure_optimizers(self):
        g = torch.optim.AdamW(self.generator.parameters(), lr=self.lr)
        d = torch.optim.AdamW(self.discriminator.parameters(), lr=self.lr)
        return [g, d]

    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        mel, wav = batch
        boundary = (batch_idx + 1) % self.accumulate == 0 or self.trainer.is_last_batch
        fake = self.generator(mel)

        self.toggle_optimizer(opt_d)
        real_score = self.discriminator(wav)
        fake_score = self.discriminator(fake.detach())
        d_loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
        self.manual_backward(d_loss / self.accumulate)
        if boundary:
            opt_d.step()
            opt_d.zero_grad()
        self.untoggle_optimizer(opt_d)

        self.toggle_optimizer(opt_g)
        g_loss = -self.discriminator(fake).mean() + 45 * F.l1_loss(fake, wav)
        self.manual_backward(g_loss / self.accumulate)
        if boundary:
            opt_g.step()
            opt_g.zero_grad()
        self.untoggle_optimizer(opt_g)
        self.log_dict({"d_loss": d_loss, "g_loss": g_loss}, prog_bar=True)
