# expect: ok
import torch
import torch.nn.functional as F


class DPOTrainer:
    def __init__(self, policy, reference, optimizer, scheduler, config):
        self.policy, self.reference = policy, reference
        self.optimizer, self.scheduler, self.config = optimizer, scheduler, config

    def loss(self, batch):
        pi = logps(self.policy, batch)
        with torch.no_grad():
            ref = logps(self.reference, batch)
        return -F.logsigmoid(self.config.beta * (pi - ref)).mean()

    def train(self, iterator):
        for batch in iterator:
            self.policy.train()
            total = 0.0
            for microbatch in slice_and_move(batch, self.config.gradient_accumulation_steps):
                loss = self.loss(microbatch)
                (loss / self.config.gradient_accumulation_steps).backward()
                total += loss.item() / self.config.gradient_accumulation_steps
            norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
            print({"loss": total, "norm": norm})
