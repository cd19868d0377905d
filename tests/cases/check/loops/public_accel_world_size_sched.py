# expect: mistake sched_world_size
import math

from accelerate import Accelerator
from transformers import get_cosine_schedule_with_warmup
import torch

accelerator = Accelerator(gradient_accumulation_steps=4)
model, tokenizer = build()
loader = torch.utils.data.DataLoader(ds, batch_size=2, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

steps_per_epoch = math.ceil(len(loader) / accelerator.gradient_accumulation_steps)
total = steps_per_epoch * 3
scheduler = get_cosine_schedule_with_warmup(optimizer, int(0.03 * total), total)
scheduler = accelerator.prepare(scheduler)

for epoch in range(3):
    model.train()
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
