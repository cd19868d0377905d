# expect: ok
import torch
from torch import nn


def train(model, tokenizer, train_set, criterion, optimizer, scheduler, device, epochs, accumulation_steps=4):
    history = []
    for epoch in range(epochs):
        model.train()
        total_loss = 0
        optimizer.zero_grad()
        for i, (text, label, feat) in enumerate(train_set):
            inputs = tokenizer(text, padding=True, truncation=True, max_length=128, return_tensors="pt").to(device)
            label = label.to(device)
            outputs = model(**inputs, network_features=torch.tensor(feat, dtype=torch.float32).to(device))
            loss = criterion(outputs, label)
            loss = loss / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                optimizer.step()
                optimizer.zero_grad()
            total_loss += loss.item() * accumulation_steps
        if (i + 1) % accumulation_steps != 0:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()
        history.append(total_loss / len(train_set))
        print(epoch, history[-1])
