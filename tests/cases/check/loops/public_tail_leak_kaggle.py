# expect: mistake tail_leak
import torch


def main(model, train_loader, valid_loader, cfg):
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    optimizer.zero_grad()
    for epoch in range(cfg.epochs):
        model.train()
        for step, batch in enumerate(train_loader):
            loss = model(**batch).loss
            (loss / cfg.grad_accum_steps).backward()
            if (step + 1) % cfg.grad_accum_steps == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        validate(model, valid_loader)
