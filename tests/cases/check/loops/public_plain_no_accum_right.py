# expect: ok
import torch
from torch import nn
from transformers import get_linear_schedule_with_warmup

model = build_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
num_epochs = 4
total = len(train_dataloader) * num_epochs
scheduler = get_linear_schedule_with_warmup(optimizer, 0, total)
for epoch in range(num_epochs):
    model.train()
    total_loss = 0
    for batch in train_dataloader:
        ids, mask, labels = (t.to("cuda") for t in batch)
        model.zero_grad()
        loss, logits = model(ids, attention_mask=mask, labels=labels, return_dict=False)
        total_loss += loss.item()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    print(epoch, total_loss / len(train_dataloader))
