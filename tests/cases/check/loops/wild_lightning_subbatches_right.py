# expect: ok
from itertools import zip_longest

import pytorch_lightning as pl
import torch


class Projector(pl.LightningModule):
    def __init__(self, encoder, subbatch_size):
        super().__init__()
        self.encoder = encoder
        self.subbatch_size = subbatch_size
        self.automatic_optimization = False

    def training_step(self, collation, batch_idx):
        batch, samples = collation
        losses = []
        optimizer = self.optimizers()
        N = len(samples)
        steps = range(0, N, self.subbatch_size)
        optimizer.zero_grad()
        subbatches = list(zip_longest(steps, steps[1:], fillvalue=N))
        for j, k in subbatches:
            subcollation = batch[j:k], samples[j:k]
            projections, reduced = self.forward(subcollation)
            targets = self.kge(reduced)
            loss = self.loss(projections, targets)
            losses.append(loss)
            self.manual_backward(loss / len(subbatches))
        optimizer.step()
        loss = torch.stack(losses).mean()
        self.log("train_loss_step", loss)
        return loss
