# expect: mistake zero_grad_in_window
import torch
from accelerate import Accelerator


class RLTrainer:
    def __init__(self, args, policy, optimizer, accelerator, lr_scheduler):
        self.args = args
        self.policy = policy
        self.optimizer = optimizer
        self.accelerator = accelerator
        self.lr_scheduler = lr_scheduler

    def step_with_rollouts(self, rollouts):
        rollouts_dataloader = self.get_rollouts_dataloader(rollouts=rollouts)
        stats_list = []
        for epoch_idx in range(self.args.noptepochs):
            for batch_idx, rollouts_batch in enumerate(rollouts_dataloader, 1):
                with self.accelerator.accumulate(self.policy):
                    ppo_loss, stats_for_this_step = self.compute_loss(rollouts_batch)
                    self.accelerator.backward(ppo_loss)
                    if self.accelerator.sync_gradients:
                        if self.args.max_grad_norm is not None:
                            self.accelerator.clip_grad_norm_(self.policy.parameters(), self.args.max_grad_norm)
                        stats_for_this_step["loss/grad_norm"] = self._compute_grad_norm()
                        stats_list.append(stats_for_this_step)
                    self.optimizer.step()
                    self.policy.zero_grad(set_to_none=True)
        return stats_list

    def compute_loss(self, rollouts):
        outputs = self.policy(**rollouts)
        loss = outputs["policy_loss"] + self.args.vf_coef * outputs["value_loss"]
        return loss, {"loss/policy": outputs["policy_loss"].detach()}


def main(args):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    policy = make_policy(args)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=args.lr)
    policy, optimizer = accelerator.prepare(policy, optimizer)
    trainer = RLTrainer(args, policy, optimizer, accelerator, None)
    for rollouts in make_rollouts(args):
        trainer.step_with_rollouts(rollouts)
