# expect: ok
import random
from collections import deque

import torch
import torch.nn.functional as F

memory = deque(maxlen=100_000)
policy, target = QNet(), QNet()
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)

state = env.reset()
for t in range(total_timesteps):
    action = act(policy, state, epsilon(t))
    next_state, reward, done, info = env.step(action)
    memory.append((state, action, reward, next_state, done))
    state = env.reset() if done else next_state
    if t > learning_starts and t % train_frequency == 0:
        s, a, r, s2, d = collate(random.sample(memory, 128))
        with torch.no_grad():
            y = r + 0.99 * target(s2).max(1)[0] * (1 - d)
        q = policy(s).gather(1, a).squeeze()
        loss = F.smooth_l1_loss(q, y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
    if t % target_frequency == 0:
        target.load_state_dict(policy.state_dict())
