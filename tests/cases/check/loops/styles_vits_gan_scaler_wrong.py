# expect: mistake clip_before_unscale
import torch


def train_and_evaluate(hps, net_g, net_d, optim_g, optim_d, scaler, train_loader, accum):
    net_g.train()
    net_d.train()
    optim_d.zero_grad()
    optim_g.zero_grad()
    for batch_idx, (x, spec, y) in enumerate(train_loader):
        boundary = (batch_idx + 1) % accum == 0 or batch_idx + 1 == len(train_loader)
        with torch.cuda.amp.autocast():
            y_hat, kl = net_g(x, spec)
            y_d_r, y_d_g = net_d(y, y_hat.detach())
            loss_disc = discriminator_loss(y_d_r, y_d_g) / accum
        scaler.scale(loss_disc).backward()
        if boundary:
            torch.nn.utils.clip_grad_norm_(net_d.parameters(), 1.0)
            scaler.step(optim_d)
            optim_d.zero_grad()
        with torch.cuda.amp.autocast():
            y_d_g = net_d(y_hat)
            loss_gen = (generator_loss(y_d_g) + kl) / accum
        scaler.scale(loss_gen).backward()
        if boundary:
            torch.nn.utils.clip_grad_norm_(net_g.parameters(), 1.0)
            scaler.step(optim_g)
            scaler.update()
            optim_g.zero_grad()
            optim_d.zero_grad()
