# expect: mistake tail_leak
import torch


class Trainer:
    @classmethod
    def train_one_epoch(cls, model, optimizers, schedulers, iterator, scaler, options):
        accum_grad = options.accum_grad
        for iiter, (utt_id, batch) in enumerate(iterator, 1):
            retval = model(**batch)
            loss, stats, weight = retval
            loss = loss / accum_grad
            if scaler is not None:
                scaler.scale(loss).backward()
            else:
                loss.backward()
            if iiter % accum_grad == 0:
                if scaler is not None:
                    for iopt, optimizer in enumerate(optimizers):
                        scaler.unscale_(optimizer)
                grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=options.grad_clip)
                if not torch.isfinite(grad_norm):
                    if scaler is not None:
                        for optimizer in optimizers:
                            scaler.step(optimizer)
                            scaler.update()
                else:
                    for optimizer, scheduler in zip(optimizers, schedulers):
                        if scaler is not None:
                            scaler.step(optimizer)
                            scaler.update()
                        else:
                            optimizer.step()
                        if scheduler is not None:
                            scheduler.step()
                for optimizer in optimizers:
                    optimizer.zero_grad()
