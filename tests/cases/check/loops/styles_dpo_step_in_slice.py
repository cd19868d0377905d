# expect: mistake apply_inside_loop
import torch
import torch.nn.functional as F


def train(policy, reference, iterator, optimizer, scheduler, config):
    for batch in iterator:
        policy.train()
        optimizer.zero_grad()
        for microbatch_idx in range(config.gradient_accumulation_steps):
            microbatch = slice_batch(batch, microbatch_idx, config.gradient_accumulation_steps)
            loss, metrics = get_batch_metrics(policy, reference, microbatch, config.loss)
            (loss / config.gradient_accumulation_steps).backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
            optimizer.step()
            scheduler.step()
