# expect: ok
def train_critic(critic, actor, replay, critic_opt, actor_opt, policy_delay=2):
    for it in range(iterations):
        batch = replay.sample(256)
        q_loss = F.mse_loss(critic(batch.s, batch.a), target(batch))
        critic_opt.zero_grad()
        q_loss.backward()
        critic_opt.step()
        if it % policy_delay == 0:
            a_loss = -critic(batch.s, actor(batch.s)).mean()
            actor_opt.zero_grad()
            a_loss.backward()
            actor_opt.step()
