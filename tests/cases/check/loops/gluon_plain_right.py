# expect: ok
from mxnet import autograd, gluon


def train(net, loader, batch_size, epochs):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_fn = gluon.loss.L2Loss()
    for epoch in range(epochs):
        total = 0.0
        for data, label in loader:
            with autograd.record():
                loss = loss_fn(net(data), label)
            loss.backward()
            trainer.step(batch_size)
            total += loss.mean().asscalar()
        print(epoch, total / len(loader))
