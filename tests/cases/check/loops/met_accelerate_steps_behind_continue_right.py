# expect: ok
import time

import torch
from accelerate import Accelerator


def main(cfg, model, train_dl):
    accelerator = Accelerator(gradient_accumulation_steps=cfg["accum"], mixed_precision="bf16")
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    model, optimizer, train_dl = accelerator.prepare(model, optimizer, train_dl)
    global_step = 0
    data_iter = iter(train_dl)
    started = time.perf_counter()
    while global_step < cfg["max_steps"]:
        try:
            batch = next(data_iter)
        except StopIteration:
            data_iter = iter(train_dl)
            batch = next(data_iter)
        with accelerator.accumulate(model):
            outputs = model(batch["input_ids"], labels=batch["input_ids"])
            accelerator.backward(outputs.loss)
        if not accelerator.sync_gradients:
            continue
        optimizer.step()
        optimizer.zero_grad()
        global_step += 1
        if global_step % cfg["log_interval"] == 0:
            print(global_step, float(outputs.loss.item()), time.perf_counter() - started)
