# expect: mistake double_division
import deepspeed

model_engine, optimizer, _, _ = deepspeed.initialize(model=model, config={
    "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8, "fp16": {"enabled": True}})
for step, batch in enumerate(loader):
    loss = model_engine(batch)
    loss = loss / 8
    model_engine.backward(loss)
    model_engine.step()
