# expect: mistake sched_units
import torch
from torch.optim.lr_scheduler import OneCycleLR
from tqdm import tqdm


class CustomTraining:
    def __init__(self, configs, model, train_loader, grad_accum_steps=4):
        self.configs = configs
        self.model = model
        self.train_loader = train_loader
        self.grad_accum_steps = grad_accum_steps
        self.optimizer = torch.optim.Adam(model.parameters(), lr=configs.lr)
        self.scheduler = OneCycleLR(self.optimizer, max_lr=1e-4, steps_per_epoch=len(train_loader),
                                    epochs=configs.num_epochs, anneal_strategy="cos", pct_start=0.3)
        self.criterion = torch.nn.CrossEntropyLoss()

    def train_one_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for i, (images, labels) in enumerate(tqdm(self.train_loader)):
            logits = self.model(images.cuda())
            loss = self.criterion(logits, labels.cuda())
            total += loss.item()
            loss = loss / self.grad_accum_steps
            loss.backward()
            if (i + 1) % self.grad_accum_steps == 0 or (i + 1) == len(self.train_loader):
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
        return total / len(self.train_loader)

    def train(self):
        for epoch in range(self.configs.num_epochs):
            print(epoch, self.train_one_epoch())
