# expect: mistake off_by_one_boundary
import time
import torch
from tqdm import tqdm


def train(fabric, model, optimizer, lr_scheduler, train_dataloader, task_cfg, tokenizer):
    num_training_steps = len(train_dataloader) * task_cfg.epochs
    iterator = tqdm(range(num_training_steps), disable=not fabric.is_global_zero)
    data_iterator = None
    for k in iterator:
        model.train()
        if k % len(train_dataloader) == 0 or data_iterator is None:
            data_iterator = iter(train_dataloader)
        is_accumulating = (k) % task_cfg.gradient_accumulation_steps != 0
        lr = lr_scheduler.get_lr(it=k)
        for param_group in optimizer.param_groups:
            param_group["lr"] = lr
        batch = next(data_iterator)
        t0 = time.time()
        with fabric.no_backward_sync(model, enabled=is_accumulating):
            chosen_rewards = model(input_ids=batch["chosen_input_ids"], attention_mask=batch["chosen_attention_mask"])
            rejected_rewards = model(input_ids=batch["rejected_input_ids"], attention_mask=batch["rejected_attention_mask"])
            loss, chosen_last, rejected_last = reward_loss(chosen_rewards=chosen_rewards, rejected_rewards=rejected_rewards)
            fabric.backward(loss / task_cfg.gradient_accumulation_steps)
        dt = time.time() - t0
        if not is_accumulating:
            fabric.clip_gradients(model, optimizer, max_norm=task_cfg.grad_norm_clip)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if k % task_cfg.log_interval == 0 and fabric.is_global_zero:
            fabric.log_dict({"loss": loss.item(), "dt": dt}, step=k)
