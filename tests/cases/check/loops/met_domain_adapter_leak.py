# expect: mistake tail_leak
import logging

import torch
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger(__name__)


def train_adapter(model, encodings, config):
    dataset = TensorDataset(encodings["input_ids"], encodings["attention_mask"])
    dataloader = DataLoader(dataset, batch_size=config.batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=0.01)
    model.train()
    total_steps = 0
    for epoch in range(config.epochs):
        epoch_loss = 0.0
        for step, (input_ids, attention_mask) in enumerate(dataloader):
            outputs = model(input_ids=input_ids.to(model.device), attention_mask=attention_mask.to(model.device), labels=input_ids.to(model.device))
            loss = outputs.loss / config.gradient_accumulation
            loss.backward()
            if (step + 1) % config.gradient_accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
            epoch_loss += loss.item() * config.gradient_accumulation
            total_steps += 1
            if total_steps % config.logging_steps == 0:
                logger.info("Epoch %d, Step %d, Loss: %.4f", epoch + 1, total_steps, epoch_loss / (step + 1))
        logger.info("Epoch %d complete, Avg Loss: %.4f", epoch + 1, epoch_loss / max(len(dataloader), 1))
