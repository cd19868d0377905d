# expect: ok
import torch
import torch.nn.functional as F


class SAC:
    def update(self, replay, updates):
        for _ in range(updates):
            s, a, r, s2, d = replay.sample(self.batch_size)
            with torch.no_grad():
                a2, logp2, _ = self.actor.sample(s2)
                q = torch.min(*self.critic_target(s2, a2)) - self.alpha * logp2
                y = r + (1 - d) * self.gamma * q
            q1, q2 = self.critic(s, a)
            critic_loss = F.mse_loss(q1, y) + F.mse_loss(q2, y)
            self.critic_optim.zero_grad()
            critic_loss.backward()
            self.critic_optim.step()
            pi, logp, _ = self.actor.sample(s)
            actor_loss = (self.alpha * logp - torch.min(*self.critic(s, pi))).mean()
            self.actor_optim.zero_grad()
            actor_loss.backward()
            self.actor_optim.step()
            alpha_loss = -(self.log_alpha * (logp + self.target_entropy).detach()).mean()
            self.alpha_optim.zero_grad()
            alpha_loss.backward()
            self.alpha_optim.step()
            self.alpha = self.log_alpha.exp()
            for p, t in zip(self.critic.parameters(), self.critic_target.parameters()):
                t.data.lerp_(p.data, self.tau)
