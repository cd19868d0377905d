# expect: ok
import numpy as np
from torch import nn


class TaskTrainer:
    def __init__(self, model, task_lst, optim, writer, accumulation_steps, print_every):
        self.model, self.task_lst, self.optim, self.writer = model, task_lst, optim, writer
        self.accumulation_steps = accumulation_steps
        self.print_every = print_every
        self.steps = 0

    def _train_epoch(self):
        total_loss, corrects = 0.0, 0
        n_tasks = len(self.task_lst)
        task_seq = list(np.random.permutation(n_tasks))
        empty_task = set()
        self.model.train()
        while len(empty_task) < n_tasks:
            for task_id in task_seq:
                if task_id in empty_task:
                    continue
                batch = self.task_lst[task_id].train_data_loader.fetch_one()
                if batch is None:
                    empty_task.add(task_id)
                    continue
                x, y = batch
                loss, pred = self.model(x["task_id"].cuda(), x["words_idx"].cuda(), y["label"].cuda())
                self.steps += 1
                total_loss += loss.item()
                loss = loss / self.accumulation_steps
                loss.backward()
                corrects += (pred.data == y["label"].cuda().data).sum()
                if self.steps % self.accumulation_steps == 0:
                    nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=1.0)
                    self.optim.step()
                    self.optim.zero_grad()
                if self.steps % self.print_every == 0:
                    self.writer.add_scalar("train_loss", total_loss / self.print_every, self.steps)
                    total_loss, corrects = 0.0, 0
