# expect: ok
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=gradient_accumulation_steps)
criterion = torch.nn.CrossEntropyLoss(reduction="none")
model, optimizer, train_dataloader, scheduler = accelerator.prepare(model, optimizer, train_dataloader, scheduler)
training_iterator = iter(train_dataloader)
num_samples_in_epoch = len(train_dataloader)
remainder = num_samples_in_epoch % gradient_accumulation_steps
remainder = remainder if remainder != 0 else gradient_accumulation_steps
total_updates = -(-num_samples_in_epoch // gradient_accumulation_steps)
for update_step in range(total_updates):
    batch_samples = []
    num_batches_in_step = gradient_accumulation_steps if update_step != total_updates - 1 else remainder
    for _ in range(num_batches_in_step):
        batch_samples += [next(training_iterator)]
    local_num_items_in_batch = sum([(batch["labels"].ne(-100)).sum() for batch in batch_samples])
    num_items_in_batch = accelerator.gather(local_num_items_in_batch).sum().item()
    for i, batch in enumerate(batch_samples):
        if i < len(batch_samples) - 1 and accelerator.num_processes > 1:
            ctx = model.no_sync
        else:
            ctx = contextlib.nullcontext
        with ctx():
            inputs, targets = batch["input_ids"], batch["labels"]
            logits = model(inputs)
            losses = criterion(logits.transpose(1, 2), targets)
            loss = losses.sum() * accelerator.num_processes / num_items_in_batch
            accelerator.backward(loss * gradient_accumulation_steps)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
