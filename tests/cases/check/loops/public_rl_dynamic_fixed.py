# expect: mistake dynamic_micro_batch_divisor
import torch


class ActorWorker:
    def __init__(self, actor, optimizer, config):
        self.actor_module = actor
        self.actor_optimizer = optimizer
        self.config = config
        self.gradient_accumulation = config.ppo_mini_batch_size // config.ppo_micro_batch_size

    def update_policy(self, dataloader):
        for mini_batch in dataloader:
            max_token_len = self.config.ppo_max_token_len
            micro_batches, _ = rearrange_micro_batches(batch=mini_batch, max_token_len=max_token_len)
            self.actor_optimizer.zero_grad()
            for data in micro_batches:
                log_prob = self.actor_module(data["input_ids"], data["responses"])
                ratio = torch.exp(log_prob - data["old_log_probs"])
                pg_loss = masked_mean(-data["advantages"] * ratio, data["response_mask"])
                loss = pg_loss / self.gradient_accumulation
                loss.backward()
            torch.nn.utils.clip_grad_norm_(self.actor_module.parameters(), self.config.grad_clip)
            self.actor_optimizer.step()
