# expect: mistake apply_inside_loop
import lightning.pytorch as pl
import torch


class Model(pl.LightningModule):
    def __init__(self, net, accumulate_grad_batches=8):
        super().__init__()
        self.automatic_optimization = False
        self.net = net
        self.accumulate_grad_batches = accumulate_grad_batches

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        sch = self.lr_schedulers()
        loss = self.net.loss(batch) / self.accumulate_grad_batches
        opt.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(opt, gradient_clip_val=0.5)
        opt.step()
        if (batch_idx + 1) % self.accumulate_grad_batches == 0:
            sch.step()
        self.log("train/loss", loss * self.accumulate_grad_batches)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-4)
        return [opt], [torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, s / 1000))]
