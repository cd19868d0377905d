# expect: ok
def train_gan(loader, G, D, opt_g, opt_d, accum=4):
    for i, real in enumerate(loader):
        fake = G(torch.randn(real.size(0), 128, device=real.device))
        d_loss = (F.softplus(-D(real)) + F.softplus(D(fake.detach()))).mean() / accum
        d_loss.backward()
        if (i + 1) % accum == 0:
            opt_d.step()
            opt_d.zero_grad()
        for p in D.parameters():
            p.requires_grad_(False)
        g_loss = F.softplus(-D(fake)).mean() / accum
        g_loss.backward()
        for p in D.parameters():
            p.requires_grad_(True)
        if (i + 1) % accum == 0:
            opt_g.step()
            opt_g.zero_grad()
