# expect: mistake backward_outside_context
from accelerate import Accelerator


def main(model, optimizer, loader, scheduler, grad_acc):
    accelerator = Accelerator(gradient_accumulation_steps=grad_acc)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
