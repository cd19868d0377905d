# expect: ok
import pytorch_lightning as pl
import torch


class PoseModule(pl.LightningModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        out = self.forward_step(batch, train=True)
        loss = self.compute_loss(batch, out, train=True)
        n = max(1, int(self.cfg.TRAIN.get("ACCUM_STEPS", 1)))
        first = (batch_idx % n) == 0
        last = ((batch_idx + 1) % n) == 0
        if first:
            opt.zero_grad()
        self.manual_backward(loss / n)
        if last:
            if self.cfg.TRAIN.get("GRAD_CLIP_VAL", 0) > 0:
                norm = torch.nn.utils.clip_grad_norm_(self.get_parameters(), self.cfg.TRAIN.GRAD_CLIP_VAL)
                self.log("train/grad_norm", norm, on_step=True)
            opt.step()
        self.log("train/loss", out["losses"]["loss"], on_step=True, prog_bar=True)
        return out
