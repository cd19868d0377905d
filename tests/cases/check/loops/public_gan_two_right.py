# expect: ok
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(gen, disc, dataset, cfg, device):
    loader = DataLoader(dataset, batch_size=cfg.batch, shuffle=True, drop_last=True)
    g_opt = torch.optim.Adam(gen.parameters(), lr=cfg.lr_g, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(disc.parameters(), lr=cfg.lr_d, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    it = iter(loader)

    def batches():
        nonlocal it
        while True:
            try:
                yield next(it)
            except StopIteration:
                it = iter(loader)

    stream = batches()
    for step in range(cfg.steps):
        d_opt.zero_grad(set_to_none=True)
        for _ in range(cfg.accumulate):
            real = next(stream).to(device)
            z = torch.randn(len(real), cfg.z_dim, device=device)
            fake = gen(z).detach()
            real_out = disc(real)
            fake_out = disc(fake)
            d_loss = bce(real_out, torch.ones_like(real_out)) + bce(fake_out, torch.zeros_like(fake_out))
            (d_loss / cfg.accumulate).backward()
        d_opt.step()

        g_opt.zero_grad(set_to_none=True)
        for _ in range(cfg.accumulate):
            z = torch.randn(cfg.batch, cfg.z_dim, device=device)
            out = disc(gen(z))
            g_loss = bce(out, torch.ones_like(out))
            (g_loss / cfg.accumulate).backward()
        g_opt.step()
        if step % 100 == 0:
            print(f"{step}: d {d_loss.item():.3f} g {g_loss.item():.3f}")
