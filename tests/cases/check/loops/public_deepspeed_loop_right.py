# expect: ok
import deepspeed
import torch


def main(args, model, train_set):
    engine, optimizer, loader, scheduler = deepspeed.initialize(
        args=args, model=model, model_parameters=model.parameters(), training_data=train_set, config=args.ds_config)
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            batch = {k: v.to(engine.device) for k, v in batch.items()}
            loss = engine(**batch).loss
            engine.backward(loss)
            engine.step()
            if engine.is_gradient_accumulation_boundary() and engine.global_steps % 10 == 0:
                print(engine.global_steps, loss.item(), engine.get_lr())
