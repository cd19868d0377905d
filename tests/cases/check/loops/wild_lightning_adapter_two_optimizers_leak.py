# expect: mistake tail_leak
import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class AdapterModule(pl.LightningModule):
    def __init__(self, conf, model, adapter):
        super().__init__()
        self.conf, self.model, self.adapter = conf, model, adapter
        self.automatic_optimization = False

    def configure_optimizers(self):
        backbone = torch.optim.AdamW(self.model.parameters(), lr=self.conf.lr)
        adapter = torch.optim.AdamW(self.adapter.parameters(), lr=self.conf.adapter_lr)
        return [backbone, adapter]

    def is_last_accum(self, batch_idx):
        return (batch_idx + 1) % self.conf.accum_batches == 0

    def training_step(self, batch, batch_idx):
        opt_backbone, opt_adapter = self.optimizers()
        accum = self.conf.accum_batches
        imgs = batch["img"]
        noise = torch.randn_like(imgs)
        with torch.autocast(device_type="cuda", enabled=self.conf.fp16):
            eps = self.model(imgs + noise)
            delta = self.adapter(imgs + noise, batch["tokens"])
            loss = F.mse_loss(eps + delta, noise)
        self.manual_backward(loss / accum)
        if self.is_last_accum(batch_idx):
            if self.conf.grad_clip > 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.conf.grad_clip)
                torch.nn.utils.clip_grad_norm_(self.adapter.parameters(), self.conf.grad_clip)
            opt_backbone.step()
            opt_adapter.step()
            opt_backbone.zero_grad()
            opt_adapter.zero_grad()
        if self.global_rank == 0:
            self.logger.experiment.add_scalar("loss/train", loss.item(), self.num_samples)
        return {"loss": loss}
