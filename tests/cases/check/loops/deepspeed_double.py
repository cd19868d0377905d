# expect: mistake double_division
import deepspeed

def train(model, args, loader):
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
    for epoch in range(args.epochs):
        for batch in loader:
            loss = engine(batch["input_ids"], labels=batch["labels"]).loss
            engine.backward(loss / args.gradient_accumulation_steps)
            engine.step()
            if engine.is_gradient_accumulation_boundary():
                print(f"loss {loss.item():.4f}")
