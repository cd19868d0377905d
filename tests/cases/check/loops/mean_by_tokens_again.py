# expect: mistake double_division
import deepspeed

from parts import net, loader, pad

engine, _, _, _ = deepspeed.initialize(model=net, config="ds.json", model_parameters=net.parameters())
for ids, labels in loader:
    outputs = engine(input_ids=ids, labels=labels)
    loss = outputs.loss
    n = (labels != pad).sum().item()
    engine.backward(loss / n)
    engine.step()
