# expect: mistake missing_zero_grad
from accelerate import Accelerator
acc = Accelerator(gradient_accumulation_steps=2)
m, o, d = acc.prepare(m, o, d)
for x, y in d:
    with acc.accumulate(m):
        l = loss_fn(m(x), y)
        acc.backward(l)
        o.step()
