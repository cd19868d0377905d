# expect: ok
import torch


class Agent:
    def __init__(self, config, model, optimizer):
        self.config = config
        self.model = model
        self.optimizer = optimizer
        self.optim_batch_size = config.training.optim_batch_size

    def train_one_epoch(self, data_loader):
        self.model.train()
        self.optimizer.zero_grad()
        steps_accum = 0
        for batch_idx, batch in enumerate(data_loader):
            curr_batch_size = batch["q"].size(0)
            loss = self.model(batch).mean()
            loss = loss * curr_batch_size / self.optim_batch_size
            loss.backward()
            steps_accum += curr_batch_size
            if steps_accum >= self.optim_batch_size:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
                self.optimizer.step()
                self.optimizer.zero_grad()
                steps_accum = 0
