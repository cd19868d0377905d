# expect: mistake clip_per_micro_step
import torch


class PPOTrainer:
    def __init__(self, model, optimizer, strategy, accumulation_steps=4):
        self.model = model
        self.optimizer = optimizer
        self.strategy = strategy
        self.accumulation_steps = accumulation_steps
        self.train_step = 0

    def loss(self, old_logprobs, values, rewards, logits, vpreds, logprobs, mask):
        ratio = torch.exp(logprobs - old_logprobs)
        advantages = rewards - values
        pg = -(advantages * torch.clamp(ratio, 0.8, 1.2) * mask).sum() / mask.sum()
        vf = 0.5 * ((vpreds - rewards) ** 2 * mask).sum() / mask.sum()
        return pg, vf, {"policy/loss": pg.detach(), "value/loss": vf.detach()}

    def train_minibatch(self, old_logprobs, values, rewards, query, response, model_input, mask):
        logits, vpreds, logprobs = self.forward(query, response, model_input)
        loss_p, loss_v, train_stats = self.loss(old_logprobs, values, rewards, logits, vpreds, logprobs, mask)
        loss = loss_p + loss_v
        loss = loss / self.accumulation_steps
        loss.backward()
        torch.nn.utils.clip_grad_norm_(filter(lambda p: p.requires_grad, self.model.parameters()), 1.0)
        if (self.train_step + 1) % self.accumulation_steps == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.train_step += 1
        return train_stats
