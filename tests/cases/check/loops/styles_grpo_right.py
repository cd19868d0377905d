# expect: ok
import torch


def update(model, optimizer, scheduler, rollouts, old_logps, advantages, mini_batch, micro_batch, epochs, clip=0.2):
    for _ in range(epochs):
        order = torch.randperm(len(rollouts))
        for start in range(0, len(rollouts), mini_batch):
            idx = order[start:start + mini_batch]
            optimizer.zero_grad(set_to_none=True)
            tokens = sum(rollouts[i].mask.sum() for i in idx)
            for s in range(0, len(idx), micro_batch):
                part = idx[s:s + micro_batch]
                logps, mask = model.logps([rollouts[i] for i in part])
                ratio = (logps - old_logps[part]).exp()
                gain = torch.min(ratio * advantages[part], ratio.clamp(1 - clip, 1 + clip) * advantages[part])
                loss = -(gain * mask).sum() / tokens
                loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        scheduler.step()
