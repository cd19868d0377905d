# expect: ok
import torch
from tqdm import tqdm


class OperatorTrainer:
    def __init__(self, model, accelerator, n_epochs):
        self.model, self.accelerator, self.n_epochs = model, accelerator, n_epochs

    def train(self, train_loader, optimizer, scheduler, training_loss):
        self.model, self.optimizer, train_loader = self.accelerator.prepare(self.model, optimizer, train_loader)
        for epoch in range(self.n_epochs):
            err = self.train_one_epoch(epoch, train_loader, training_loss)
            scheduler.step()
            print(epoch, err)

    def train_one_epoch(self, epoch, train_loader, training_loss):
        self.model.train()
        avg_loss = train_err = 0.0
        self.optimizer.zero_grad(set_to_none=True)
        for idx, sample in enumerate(tqdm(train_loader)):
            with self.accelerator.accumulate(self.model):
                loss = training_loss(self.model(**sample), **sample)
                self.accelerator.backward(loss)
                if self.accelerator.sync_gradients:
                    self.optimizer.step()
                    self.optimizer.zero_grad(set_to_none=True)
            train_err += loss.item()
            with torch.no_grad():
                avg_loss += loss.item()
        return train_err / len(train_loader)
