# expect: ok
import lightning as L
import torch
from torch import nn


class ValueNetwork(L.LightningModule):
    def __init__(self, num_available, train_predictor, lr):
        super().__init__()
        self.num_available = num_available
        self.train_predictor = train_predictor
        self.lr = lr
        self.automatic_optimization = False

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        opt.zero_grad()
        x, r, y = batch
        m = torch.zeros_like(x)
        dist, log_probs = self.evaluate(x, m, y)
        nll_prior = -log_probs.detach()
        total_loss = 0
        for _ in range(self.num_available):
            pred = self(x, m).flatten(1)
            available = r * (1 - m)
            has_available = (available.sum(dim=1) > 0).float()
            if has_available.sum() == 0:
                continue
            actions = torch.rand_like(available).masked_fill(available == 0, -1).argmax(dim=1)
            m = m.clone()
            m.scatter_(1, actions.unsqueeze(1), 1)
            dist, log_probs = self.evaluate(x, m, y)
            nll = -log_probs
            delta = nll_prior - nll.detach()
            value_loss = nn.functional.mse_loss(pred[torch.arange(pred.shape[0]), actions], delta)
            loss = torch.sum(value_loss * has_available) / has_available.sum()
            if self.train_predictor:
                loss += torch.sum(nll * has_available) / has_available.sum()
            self.manual_backward(loss / self.num_available)
            nll_prior = nll.detach()
            total_loss += loss
        opt.step()
        self.log("train_loss", total_loss, prog_bar=True)
