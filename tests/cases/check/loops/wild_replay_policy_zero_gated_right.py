# expect: ok
import torch
import torch.nn.functional as F


def learn(args, model, optimizer, scheduler, replay_buffer, device):
    accumulation_steps = args.gradient_accumulation_steps
    total_loss = 0.0
    running_baseline = 0.5
    global_step = 0
    num_batches = max(1, len(replay_buffer) // args.batch_size)
    for epoch in range(args.num_epochs):
        epoch_loss = 0.0
        for batch_idx in range(num_batches):
            states, actions, rewards = replay_buffer.sample(args.batch_size)
            states, actions, rewards = states.to(device), actions.to(device), rewards.to(device)
            try:
                model.train()
                if global_step % accumulation_steps == 0:
                    optimizer.zero_grad()
                predictions, values = model(states, add_noise=True)
                if torch.isnan(predictions).any() or torch.isinf(predictions).any():
                    print("skipping batch")
                    continue
                advantages = (rewards - running_baseline) / (rewards.std() + 1e-8)
                cos_sim = F.cosine_similarity(predictions, actions, dim=1)
                pg_loss = -(torch.log(cos_sim.clamp(min=1e-8)) * advantages).mean()
                value_loss = F.mse_loss(values.squeeze(), rewards)
                final_loss = 1.0 * pg_loss + 0.5 * value_loss
                scaled_loss = final_loss / accumulation_steps
                if torch.isnan(final_loss):
                    continue
                scaled_loss.backward()
                global_step += 1
                if global_step % accumulation_steps == 0:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                    if scheduler:
                        scheduler.step()
            except RuntimeError as e:
                print(f"error: {e}")
                continue
            running_baseline = 0.99 * running_baseline + 0.01 * rewards.mean().item()
            epoch_loss += final_loss.item()
            total_loss += final_loss.item()
    if global_step % accumulation_steps != 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
    print(f"{total_loss / (num_batches * args.num_epochs):.6f}")
