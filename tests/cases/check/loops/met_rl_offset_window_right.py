# expect: ok
import random

import torch


def finetune(model, items, collate, config, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    scaler = torch.amp.GradScaler("cuda") if device.type == "cuda" else None
    for epoch in range(config.epochs):
        random.shuffle(items)
        optimizer.zero_grad(set_to_none=True)
        for offset in range(0, len(items), config.batch_size):
            batch = collate(items[offset:offset + config.batch_size])
            with torch.autocast(device_type=device.type, enabled=scaler is not None):
                logits = model(batch["x"].to(device))
                mask = batch["mask"].to(device)
                noise = torch.randn((config.samples, *logits.shape), device=device) * config.sigma
                sampled = logits.detach().unsqueeze(0) + noise
                with torch.no_grad():
                    reward = proper_reward(sampled.softmax(-1), batch["target"].to(device))
                    advantage = reward - reward.mean(0, keepdim=True)
                    advantage = advantage / (advantage.std() + 1e-6)
                log_probability = -(((sampled - logits.unsqueeze(0)) ** 2) * mask).sum(-1) / (2 * config.sigma**2)
                loss = -(advantage * log_probability).mean() / config.gradient_accumulation
            if scaler is None:
                loss.backward()
            else:
                scaler.scale(loss).backward()
            if (offset // config.batch_size + 1) % config.gradient_accumulation == 0 or offset + config.batch_size >= len(items):
                if scaler is not None:
                    scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                if scaler is None:
                    optimizer.step()
                else:
                    scaler.step(optimizer)
                    scaler.update()
                optimizer.zero_grad(set_to_none=True)
