# expect: mistake unscale_twice
def epoch_step(net, loader, opt, scaler, sched, accumulate):
    opt.zero_grad(set_to_none=True)
    for it, sample in enumerate(loader):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = net(sample["image"], sample["mask"]) / accumulate
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        if (it + 1) % accumulate == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
            sched.step()
