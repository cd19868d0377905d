# expect: mistake no_division
import torch
import torch.nn.functional as F


class GanTrainer:
    def __init__(self, G, D, loader, opt):
        self.G, self.D, self.loader = G, D, loader
        self.optG = torch.optim.Adam(G.parameters(), lr=opt.lr)
        self.optD = torch.optim.Adam(D.parameters(), lr=opt.lr)
        self.n_accum = opt.n_accum
        self.z_dim = opt.z_dim

    def d_loss(self, x):
        z = torch.randn(x.size(0), self.z_dim, device=x.device)
        with torch.no_grad():
            fake = self.G(z)
        return F.relu(1 - self.D(x)).mean() + F.relu(1 + self.D(fake)).mean()

    def g_loss(self, x):
        z = torch.randn(x.size(0), self.z_dim, device=x.device)
        return -self.D(self.G(z)).mean()

    def epoch(self):
        self.optD.zero_grad()
        self.optG.zero_grad()
        for i, x in enumerate(self.loader):
            x = x.cuda()
            for p in self.D.parameters():
                p.requires_grad_(True)
            loss_d = self.d_loss(x)
            loss_d.backward()
            for p in self.D.parameters():
                p.requires_grad_(False)
            loss_g = self.g_loss(x) / self.n_accum
            loss_g.backward()
            if (i + 1) % self.n_accum == 0 or i + 1 == len(self.loader):
                self.optD.step()
                self.optG.step()
                self.optD.zero_grad()
                self.optG.zero_grad()
