# expect: mistake zero_grad_in_window
import torch


def train_one_epoch(model, optimizers, iterator, options):
    for iiter, batch in enumerate(iterator, 1):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss, stats, weight = model(**batch)
        loss = loss / options.accum_grad
        loss.backward()
        if iiter % options.accum_grad == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.grad_clip)
            for optimizer in optimizers:
                optimizer.step()
