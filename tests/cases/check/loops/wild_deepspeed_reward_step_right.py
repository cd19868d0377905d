# expect: ok
import torch
import deepspeed


def update(model_engine, batches, rank, writer, pbar, global_step, beta=0.04, eps=0.2):
    for ids, mask, advantages, ref_log_probs in batches:
        logits = model_engine(ids).logits[:, :-1]
        policy = logits.log_softmax(-1).gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
        ratio = torch.exp(policy - ref_log_probs.detach())
        kl = torch.exp(ref_log_probs - policy) - (ref_log_probs - policy) - 1
        clipped = torch.clamp(ratio, 1 - eps, 1 + eps) * advantages
        per_token = torch.min(ratio * advantages, clipped) - beta * kl
        loss = -(per_token * mask).sum() / (mask.sum() + 1e-8)
        model_engine.backward(loss)
        model_engine.step()
        global_step += 1
        if rank == 0:
            pbar.update(1)
            writer.add_scalar("Train/Loss", loss.item(), global_step)
    return global_step
