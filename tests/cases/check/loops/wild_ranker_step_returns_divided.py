# expect: mistake log_factor tail_leak
import logging

import torch
from torch import nn
from tqdm import tqdm


class MultiTaskRanker(nn.Module):
    def __init__(self, params, accumulation_steps=1):
        super().__init__()
        self.accumulation_steps = accumulation_steps
        self._max_gradient_norm = params["max_gradient_norm"]
        self.build(params)

    def train_step(self, batch_data):
        return_dict = self.forward(batch_data)
        y_true = self.get_labels(batch_data)
        loss = self.compute_loss(return_dict, y_true)
        loss = loss / self.accumulation_steps
        loss.backward()
        if (self._batch_index + 1) % self.accumulation_steps == 0:
            nn.utils.clip_grad_norm_(self.parameters(), self._max_gradient_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss

    def train_epoch(self, data_generator):
        self._batch_index = 0
        train_loss = 0
        self.train()
        for batch_index, batch_data in enumerate(tqdm(data_generator)):
            self._batch_index = batch_index
            self._total_steps += 1
            loss = self.train_step(batch_data)
            train_loss += loss.item()
            if self._total_steps % self._eval_steps == 0:
                logging.info("Train loss: {:.6f}".format(train_loss / self._eval_steps))
                train_loss = 0
                self.eval_step()

    def fit(self, data_generator, epochs=1):
        for epoch in range(epochs):
            self.train_epoch(data_generator)
