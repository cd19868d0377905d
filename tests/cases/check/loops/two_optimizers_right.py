# expect: ok
for real in loader:
    critic_optimizer.zero_grad()
    fake = generator(torch.randn(len(real), latent))
    critic_loss = critic(fake.detach()).mean() - critic(real).mean()
    critic_loss.backward()
    critic_optimizer.step()

    generator_optimizer.zero_grad()
    generator_loss = -critic(fake).mean()
    generator_loss.backward()
    generator_optimizer.step()
