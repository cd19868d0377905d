# expect: ok
import torch


def train(model, optimizer, env_factory, num_steps, gamma):
    while True:
        model.load_state_dict(shared.state_dict())
        values, log_probs, rewards = [], [], []
        for step in range(num_steps):
            value, logit = model(state)
            prob = torch.softmax(logit, -1)
            action = prob.multinomial(1)
            log_probs.append(torch.log(prob).gather(1, action))
            state, reward, done = env_factory.step(action)
            values.append(value)
            rewards.append(reward)
        policy_loss, value_loss, R = 0, 0, torch.zeros(1, 1)
        for i in reversed(range(len(rewards))):
            R = gamma * R + rewards[i]
            adv = R - values[i]
            value_loss = value_loss + 0.5 * adv.pow(2)
            policy_loss = policy_loss - log_probs[i] * adv.detach()
        optimizer.zero_grad()
        (policy_loss + 0.5 * value_loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 50)
        optimizer.step()
