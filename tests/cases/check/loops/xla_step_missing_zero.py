# expect: mistake missing_zero_grad
import torch_xla.core.xla_model as xm


def run_epoch(net, loader, adam, schedule, accumulate=8):
    adam.zero_grad()
    for number, (images, labels) in enumerate(loader, start=1):
        (net(images, labels) / accumulate).backward()
        if number % accumulate == 0:
            xm.optimizer_step(adam)
            schedule.step()
