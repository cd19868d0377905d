# expect: mistake log_factor
import torch


class Reporter:
    def __init__(self):
        self.rows = []

    def register(self, stats, weight=None):
        self.rows.append({k: float(v) for k, v in stats.items()})

    def log_message(self):
        return ", ".join(f"{k}={sum(r[k] for r in self.rows) / len(self.rows):.3f}" for k in self.rows[0])


def train_one_epoch(model, iterator, optimizer, scheduler, scaler, reporter, options):
    accum_grad, grad_clip = options.accum_grad, options.grad_clip
    optimizer.zero_grad()
    for iiter, (utt_id, batch) in enumerate(iterator, 1):
        with torch.autocast("cuda", enabled=scaler is not None):
            loss, stats, weight = model(**batch)
            loss /= accum_grad
        reporter.register({"loss": loss.item()}, weight)
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if iiter % accum_grad == 0:
            if scaler is not None:
                scaler.unscale_(optimizer)
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=grad_clip)
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            elif torch.isfinite(grad_norm):
                optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if iiter % options.log_interval == 0:
            print(reporter.log_message())
