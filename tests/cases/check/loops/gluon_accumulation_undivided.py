# expect: mistake no_division
import mxnet as mx
from mxnet import autograd, gluon


def train(net, loader, ctx, epochs, batch_size, accumulate):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    net.collect_params().setattr("grad_req", "add")
    for epoch in range(epochs):
        net.collect_params().zero_grad()
        for i, (data, label) in enumerate(loader):
            with autograd.record():
                loss = loss_fn(net(data), label)
            loss.backward()
            if (i + 1) % accumulate == 0:
                trainer.step(batch_size)
                net.collect_params().zero_grad()
