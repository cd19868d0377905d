# expect: ok
import mxnet as mx
from mxnet import autograd, gluon


def finetune(model, loader, params, args):
    trainer = gluon.Trainer(model.collect_params(), "bertadam", {"learning_rate": args.lr})
    if args.accumulate > 1:
        for p in params:
            p.grad_req = "add"
    for epoch in range(args.epochs):
        model.collect_params().zero_grad()
        for batch_id, seqs in enumerate(loader):
            with autograd.record():
                out = model(seqs[0])
                ls = loss_function(out, seqs[1]).mean() / args.accumulate
            ls.backward()
            if (batch_id + 1) % args.accumulate == 0:
                trainer.allreduce_grads()
                gluon.utils.clip_global_norm(params, 1)
                trainer.update(1)
                model.collect_params().zero_grad()
