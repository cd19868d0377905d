# expect: mistake clip_before_unscale
import torch
from torch.cuda.amp import GradScaler, autocast


def train_gan(G, D, loader, opt_g, opt_d, bce, l1, cfg):
    scaler_g, scaler_d = GradScaler(), GradScaler()
    for epoch in range(cfg.epochs):
        for x, y in loader:
            x, y = x.to(cfg.device), y.to(cfg.device)
            with autocast():
                fake = G(x)
                d_real = D(x, y)
                d_fake = D(x, fake.detach())
                d_loss = (bce(d_real, torch.ones_like(d_real)) + bce(d_fake, torch.zeros_like(d_fake))) / 2
            opt_d.zero_grad()
            scaler_d.scale(d_loss).backward()
            torch.nn.utils.clip_grad_norm_(D.parameters(), 1.0)
            scaler_d.step(opt_d)
            scaler_d.update()
            with autocast():
                d_fake = D(x, fake)
                g_loss = bce(d_fake, torch.ones_like(d_fake)) + cfg.l1_lambda * l1(fake, y)
            opt_g.zero_grad()
            scaler_g.scale(g_loss).backward()
            scaler_g.unscale_(opt_g)
            torch.nn.utils.clip_grad_norm_(G.parameters(), 1.0)
            scaler_g.step(opt_g)
            scaler_g.update()
        print(epoch, d_loss.item(), g_loss.item())
