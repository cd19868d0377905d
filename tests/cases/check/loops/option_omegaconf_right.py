# expect: ok
from omegaconf import OmegaConf

cfg = OmegaConf.merge(OmegaConf.create({"train": {"accum_steps": 4, "keep_sum": False}}), OmegaConf.from_cli())


def train(model, loader, optimizer):
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        loss = model(batch)
        if not cfg.train.keep_sum:
            loss /= cfg.train.accum_steps
        loss.backward()
        if (i + 1) % cfg.train.accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
