# expect: mistake no_division
import torch


def train(network, network_d, loader, losses, optimizer, optimizer_d, scheduler, n_iters, virtual_batch_size, gan_weight):
    scaler, scaler_d = torch.cuda.amp.GradScaler(), torch.cuda.amp.GradScaler()
    total_iter = 0
    while total_iter < n_iters:
        for img_lr, img_hr in loader:
            total_iter += 1
            if network_d is not None:
                for p in network_d.parameters():
                    p.requires_grad = False
            with torch.cuda.amp.autocast(dtype=torch.bfloat16):
                img_sr = network(img_lr)
                loss_total = losses.pixel(img_sr, img_hr)
                if network_d is not None:
                    loss_total = loss_total + gan_weight * losses.gan(network_d(img_sr), True)
            scaler.scale(loss_total).backward()
            if total_iter % virtual_batch_size == 0 or total_iter >= n_iters:
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
                optimizer.zero_grad()
            if network_d is not None:
                for p in network_d.parameters():
                    p.requires_grad = True
                with torch.cuda.amp.autocast(dtype=torch.bfloat16):
                    loss_d = losses.gan_d(network_d(img_hr), True) + losses.gan_d(network_d(img_sr.detach().clone()), False)
                scaler_d.scale(loss_d).backward()
                if total_iter % virtual_batch_size == 0 or total_iter >= n_iters:
                    scaler_d.step(optimizer_d)
                    scaler_d.update()
                    optimizer_d.zero_grad()
            if total_iter >= n_iters:
                break
