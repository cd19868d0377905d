# expect: mistake apply_inside_loop missing_zero_grad
import mxnet as mx
from mxnet import autograd as ag, gluon


def main(opt, net, train_data, batch_fn, ctx, batch_size):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": opt.lr})
    if opt.accumulate > 1:
        for p in net.collect_params().values():
            p.grad_req = "add"
    L = gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in range(opt.num_epochs):
        train_loss_epoch = 0
        for i, batch in enumerate(train_data):
            data, label = batch_fn(batch, ctx)
            with ag.record():
                outputs = []
                for _, X in enumerate(data):
                    outputs.append(net(X.astype(opt.dtype, copy=False)))
                loss = [L(yhat, y) for yhat, y in zip(outputs, label)]
                ag.backward(loss)
            if opt.accumulate > 1 and (i + 1) % opt.accumulate == 0:
                trainer.step(batch_size * opt.accumulate)
                net.collect_params().zero_grad()
            else:
                trainer.step(batch_size)
            train_loss_epoch += sum([l.mean().asscalar() for l in loss]) / len(loss)
        print(epoch, train_loss_epoch / (i + 1))
