# expect: ok
import deepspeed
from deepspeed.pipe import PipelineModule


def main(args):
    net = PipelineModule(layers=join_layers(build()), loss_fn=torch.nn.CrossEntropyLoss(), num_stages=args.stages)
    engine, _, _, _ = deepspeed.initialize(args=args, model=net, model_parameters=[p for p in net.parameters()], training_data=ds)
    for step in range(args.steps):
        loss = engine.train_batch()
        if step % 10 == 0:
            print(step, loss)
