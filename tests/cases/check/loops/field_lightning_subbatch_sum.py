# expect: mistake no_division
import logging
import torch
import pytorch_lightning as pl
from itertools import zip_longest


class Joint(pl.LightningModule):
    def __init__(self, config, projector, targets):
        super().__init__()
        self.automatic_optimization = False
        self.config = config
        self.projector = projector
        self.targets = targets
        self.compare = torch.nn.MSELoss()
        self.subbatch_size = config.subbatch_size

    def configure_optimizers(self):
        return torch.optim.Adam(self.projector.parameters(), lr=self.config.lr)

    def _subbatch(self, batch, samples):
        n = self.subbatch_size
        steps = list(range(0, len(samples), n))
        for j, k in zip_longest(steps, steps[1:], fillvalue=len(samples)):
            yield batch[j:k], samples[j:k]

    def training_step(self, collation, batch_idx):
        losses = []
        optimizer = self.optimizers()
        batch, samples = collation
        for subbatch, subsamples in self._subbatch(batch, samples):
            projections = self.projector(subbatch)
            idxs = [s.key for s in subsamples]
            loss = self.compare(projections, self.targets[idxs])
            losses.append(loss.detach())
            self.manual_backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        loss = torch.stack(losses).mean()
        self.log("training/loss", loss)
        return loss
