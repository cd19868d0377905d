# expect: mistake missing_zero_grad
import torch


def train(G, D, loader, accum, device):
    opt_g = torch.optim.Adam(G.parameters(), 2e-4)
    opt_d = torch.optim.Adam(D.parameters(), 2e-4)
    for i, real in enumerate(loader):
        real = real.to(device)
        z = torch.randn(real.size(0), 128, device=device)
        fake = G(z)
        d_loss = (torch.relu(1 - D(real)).mean() + torch.relu(1 + D(fake.detach())).mean()) / accum
        d_loss.backward()
        if (i + 1) % accum == 0:
            opt_d.step()
        g_loss = -D(fake).mean() / accum
        g_loss.backward()
        if (i + 1) % accum == 0:
            opt_g.step()
            opt_d.zero_grad()
