# expect: ok
import pytorch_lightning as pl
import torch


class FrequencyModel(pl.LightningModule):
    def __init__(self, n_datapoints, n_batches_per_epoch, accum_v2=True):
        super().__init__()
        self.n_datapoints = n_datapoints
        self.n_batches_per_epoch = n_batches_per_epoch
        self.accum_v2 = accum_v2
        self.loss_func = torch.nn.MSELoss(reduction="sum")
        self.automatic_optimization = not accum_v2
        if accum_v2:
            self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        pred_logw, targets = self(batch), batch["target_logw"]
        loss = self.loss_func(torch.squeeze(pred_logw), targets)
        batch_size = len(targets)
        self.log("train_loss", loss / batch_size, batch_size=batch_size)
        if self.accum_v2:
            opt = self.optimizers()
            self.manual_backward(loss / self.n_datapoints)
            if (batch_idx + 1) % self.n_batches_per_epoch == 0:
                opt.step()
                opt.zero_grad()
            return
        else:
            return loss / batch_size
