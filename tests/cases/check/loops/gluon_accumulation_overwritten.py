# expect: mistake zero_grad_in_window
import mxnet as mx
from mxnet import autograd, gluon


def train(net, loader, ctx, epochs, batch_size, accumulate):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in range(epochs):
        for i, (data, label) in enumerate(loader):
            with autograd.record():
                loss = loss_fn(net(data), label)
            loss.backward()
            if (i + 1) % accumulate == 0:
                trainer.step(batch_size * accumulate)
