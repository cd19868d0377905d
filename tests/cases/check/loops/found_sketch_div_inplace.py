# expect: mistake log_factor
import torch
import torch.nn as nn
from torch.utils.tensorboard import SummaryWriter


class SketchTrainer:
    def __init__(self, encoder, sketcher, generator, accumulation_steps, lr):
        self.encoder = encoder
        self.sketcher = sketcher
        self.generator = generator
        self.accumulation_steps = accumulation_steps
        self.l1_loss = nn.L1Loss()
        self.encoder_optim = torch.optim.Adam(encoder.parameters(), lr=lr)
        self.sketcher_optim = torch.optim.Adam(sketcher.parameters(), lr=lr)
        self.writer_loss = SummaryWriter("logs/loss")
        self.step = 0

    def train_batch(self, batch_idx, sketch_data, real_data, z_data):
        encoded_z = self.encoder(sketch_data)
        loss = self.l1_loss(encoded_z, z_data)
        fake_img = self.generator(encoded_z, None)
        loss.add_(self.l1_loss(fake_img, real_data))
        sketch_fake = self.sketcher(fake_img)
        loss.add_(self.l1_loss(sketch_fake, sketch_data))
        loss.div_(self.accumulation_steps)
        loss.backward()
        if (batch_idx + 1) % self.accumulation_steps == 0:
            self.encoder_optim.step()
            self.sketcher_optim.step()
            self.encoder_optim.zero_grad()
            self.sketcher_optim.zero_grad()
        self.writer_loss.add_scalar("loss", loss.item(), self.step)
        self.step += 1

    def train(self, loader, epochs):
        for epoch in range(epochs):
            self.encoder_optim.zero_grad()
            self.sketcher_optim.zero_grad()
            for batch_idx, (sketch, real, z) in enumerate(loader):
                self.train_batch(batch_idx, sketch.cuda(), real.cuda(), z.cuda())
