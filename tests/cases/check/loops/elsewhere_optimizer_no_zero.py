# expect: mistake missing_zero_grad
from zoo import build_net, fetch


def learn(total, accum_steps=4):
    net = build_net("small").cuda()
    optim = net.make_optimizer(lr=1e-3)
    for update in range(total):
        for group in optim.param_groups:
            group["lr"] = 1e-3 * (1 - update / total)
        for _ in range(accum_steps):
            inputs, targets = fetch("train")
            loss = net.loss(inputs, targets) / accum_steps
            loss.backward()
        optim.step()
