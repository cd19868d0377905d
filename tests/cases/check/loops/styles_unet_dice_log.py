# expect: mistake log_factor
import torch


class Trainer:
    def __init__(self, net, optimizer, criterion, loader, accumulation_steps=4):
        self.net, self.optimizer, self.criterion, self.loader = net, optimizer, criterion, loader
        self.accumulation_steps = accumulation_steps

    def iterate(self, epoch):
        running_loss = 0.0
        self.optimizer.zero_grad()
        for itr, (images, targets) in enumerate(self.loader):
            loss = self.criterion(self.net(images.cuda()), targets.cuda())
            loss = loss / self.accumulation_steps
            loss.backward()
            if (itr + 1) % self.accumulation_steps == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            running_loss += loss.item()
        epoch_loss = running_loss / len(self.loader)
        print(f"Epoch {epoch}: loss {epoch_loss:.4f}")
        return epoch_loss
