# expect: mistake zero_grad_in_window
import pytorch_lightning as pl


class LitModel(pl.LightningModule):
    def __init__(self, net, accumulate=8):
        super().__init__()
        self.automatic_optimization = False
        self.net = net
        self.accumulate = accumulate

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        opt.zero_grad()
        loss = self.net(batch).mean() / self.accumulate
        self.manual_backward(loss)
        if (batch_idx + 1) % self.accumulate == 0:
            opt.step()
