# expect: ok
import torch


class Agents:
    def __init__(self, models, agents, cfg):
        self.agents, self.cfg = agents, cfg
        self.policies = {uid: models[uid].get("policy", None) for uid in agents}
        self.scaler = torch.amp.GradScaler(enabled=cfg.mixed_precision)
        self.optimizers = {}
        for uid in agents:
            self.optimizers[uid] = torch.optim.Adam(self.policies[uid].parameters(), lr=1e-3)

    def update(self, memories):
        for uid in self.agents:
            policy = self.policies[uid]
            batches = memories[uid].sample_all(mini_batches=self.cfg.mini_batches[uid])
            for epoch in range(self.cfg.learning_epochs[uid]):
                for sampled in batches:
                    loss = policy.act(sampled).mean()
                    self.optimizers[uid].zero_grad()
                    self.scaler.scale(loss).backward()
                    self.scaler.step(self.optimizers[uid])
                    self.scaler.update()
