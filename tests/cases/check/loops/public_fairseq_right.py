# expect: ok
import contextlib

import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, args, task, model, criterion, optimizer, lr_scheduler):
        self.args, self.task = args, task
        self.model, self.criterion = model, criterion
        self.optimizer, self.lr_scheduler = optimizer, lr_scheduler
        self.num_updates = 0

    def train_step(self, samples):
        self.model.train()
        self.optimizer.zero_grad()
        sample_size, logs = 0, []
        for i, sample in enumerate(samples):
            sample = {k: v.cuda() for k, v in sample.items()}

            def maybe_no_sync():
                if self.args.distributed_world_size > 1 and i < len(samples) - 1:
                    return self.model.no_sync()
                return contextlib.ExitStack()

            with maybe_no_sync():
                loss, sample_size_i, log = self.criterion(self.model, sample)
                loss.backward()
            logs.append(log)
            sample_size += sample_size_i
        if self.args.distributed_world_size > 1:
            total = torch.tensor([float(sample_size)]).cuda()
            dist.all_reduce(total)
            sample_size = total.item()
        for p in self.model.parameters():
            if p.grad is not None:
                p.grad.mul_(self.args.distributed_world_size / sample_size)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip_norm)
        self.optimizer.step()
        self.num_updates += 1
        self.lr_scheduler.step_update(self.num_updates)
        return logs
