# expect: ok
import torch
from torch.distributions import Categorical


def finish_episode(policy, optimizer, gamma=0.99):
    R, returns, losses = 0, [], []
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    for log_prob, ret in zip(policy.saved_log_probs, returns):
        losses.append(-log_prob * ret)
    optimizer.zero_grad()
    loss = torch.stack(losses).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


def main(env, policy):
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for episode in range(1000):
        state, done = env.reset(), False
        while not done:
            dist = Categorical(policy(state))
            action = dist.sample()
            policy.saved_log_probs.append(dist.log_prob(action))
            state, reward, done, _ = env.step(action.item())
            policy.rewards.append(reward)
        finish_episode(policy, optimizer)
