# expect: ok
import torch
from tqdm import tqdm


class Trainer:
    def __init__(self, net, batch_size, accumulation, optimizer, criterion, dataloaders, scheduler):
        self.net = net
        self.accumulation_steps = 32 // batch_size
        self.optimizer, self.criterion = optimizer, criterion
        self.dataloaders, self.scheduler = dataloaders, scheduler
        self.losses = {"train": [], "val": []}

    def forward(self, images, targets):
        images = images.cuda()
        outputs = self.net(images)
        return self.criterion(outputs, targets.cuda()), outputs

    def iterate(self, epoch, phase):
        self.net.train(phase == "train")
        dataloader = self.dataloaders[phase]
        running_loss = 0.0
        total_batches = len(dataloader)
        self.optimizer.zero_grad()
        for itr, batch in enumerate(tqdm(dataloader)):
            images, targets = batch
            loss, outputs = self.forward(images, targets)
            loss = loss / self.accumulation_steps
            if phase == "train":
                loss.backward()
                if (itr + 1) % self.accumulation_steps == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            running_loss += loss.item()
        epoch_loss = (running_loss * self.accumulation_steps) / total_batches
        self.losses[phase].append(epoch_loss)
        return epoch_loss
