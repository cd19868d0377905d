# expect: ok
import torch
from rl_utils import append_to_dict, compute_policy_loss, masked_mean, rearrange_micro_batches


class DataParallelPPOActor:
    def __init__(self, config, actor_module, actor_optimizer):
        self.config = config
        self.actor_module = actor_module
        self.actor_optimizer = actor_optimizer

    def _optimizer_step(self):
        grad_norm = torch.nn.utils.clip_grad_norm_(self.actor_module.parameters(), max_norm=self.config.grad_clip)
        if not torch.isfinite(grad_norm):
            self.actor_optimizer.zero_grad()
        else:
            self.actor_optimizer.step()
        return grad_norm

    def update_policy(self, data):
        self.actor_module.train()
        dataloader = data.split(self.config.ppo_mini_batch_size)
        metrics = {}
        for epoch in range(self.config.ppo_epochs):
            for batch_idx, mini_batch in enumerate(dataloader):
                if self.config.use_dynamic_bsz:
                    max_token_len = self.config.ppo_max_token_len_per_gpu
                    micro_batches, _ = rearrange_micro_batches(batch=mini_batch, max_token_len=max_token_len)
                else:
                    self.gradient_accumulation = self.config.ppo_mini_batch_size // self.config.ppo_micro_batch_size_per_gpu
                    micro_batches = mini_batch.split(self.config.ppo_micro_batch_size_per_gpu)
                self.actor_optimizer.zero_grad()
                for micro in micro_batches:
                    entropy, log_prob = self._forward_micro_batch(micro)
                    pg_loss, clipfrac = compute_policy_loss(micro["old_log_probs"], log_prob, micro["advantages"], micro["response_mask"])
                    entropy_loss = masked_mean(entropy, micro["response_mask"])
                    policy_loss = pg_loss - entropy_loss * self.config.entropy_coeff
                    if self.config.use_dynamic_bsz:
                        loss = policy_loss * (len(micro) / self.config.ppo_mini_batch_size)
                    else:
                        loss = policy_loss / self.gradient_accumulation
                    loss.backward()
                    append_to_dict(metrics, {"actor/pg_loss": pg_loss.detach().item(), "actor/clipfrac": clipfrac.item()})
                grad_norm = self._optimizer_step()
                append_to_dict(metrics, {"actor/grad_norm": grad_norm.detach().item()})
        self.actor_optimizer.zero_grad()
        return metrics
