# expect: ok
import mxnet as mx
from mxnet import autograd, gluon


def train(net, loader, ctx, epochs, accumulate):
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for p in net.collect_params().values():
        p.grad_req = "add"
    for epoch in range(epochs):
        net.collect_params().zero_grad()
        for i, (data, label) in enumerate(loader):
            data, label = data.as_in_context(ctx), label.as_in_context(ctx)
            with autograd.record():
                loss = loss_fn(net(data), label)
            loss.backward()
            if (i + 1) % accumulate == 0:
                trainer.step(data.shape[0] * accumulate)
                net.collect_params().zero_grad()
