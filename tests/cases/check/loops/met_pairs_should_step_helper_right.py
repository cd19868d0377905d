# expect: ok
import torch


def accumulation_should_step(micro_count, *, accumulation_steps, is_last):
    if accumulation_steps < 1:
        raise ValueError("accumulation_steps must be positive")
    return micro_count >= accumulation_steps or (is_last and micro_count > 0)


def train(model, loader, trainable, learning_rate, accumulation_steps, max_steps, negative_margin, epochs, device):
    optimizer = torch.optim.AdamW(trainable, lr=learning_rate)
    losses, optimizer_steps, micro_count = [], 0, 0
    optimizer.zero_grad(set_to_none=True)
    for epoch in range(epochs):
        for batch_index, (left, right, target) in enumerate(loader):
            target = target.to(device)
            cosine = torch.nn.functional.cosine_similarity(pool(model, left), pool(model, right))
            raw_loss = (
                target * torch.square(1.0 - cosine)
                + (1.0 - target) * torch.square(torch.relu(cosine - negative_margin))
            ).mean()
            (raw_loss / float(accumulation_steps)).backward()
            losses.append(float(raw_loss.detach().cpu()))
            micro_count += 1
            if accumulation_should_step(micro_count, accumulation_steps=accumulation_steps, is_last=batch_index == len(loader) - 1):
                torch.nn.utils.clip_grad_norm_(trainable, 1.0)
                optimizer.step(); optimizer.zero_grad(set_to_none=True)
                optimizer_steps += 1; micro_count = 0
                if optimizer_steps % 100 == 0 or optimizer_steps == 1:
                    print(f"step={optimizer_steps}/{max_steps} loss={losses[-1]:.6f}", flush=True)
                if optimizer_steps >= max_steps:
                    break
    return losses
