# expect: ok
import torch


def fit(cfg, model, train_loader, criterion, optimizer, scheduler):
    model.train()
    for epoch in range(int(cfg.epoch_num)):
        gap_loss = 0.0
        for step, batch in enumerate(train_loader, 1):
            ids, mask, label = (t.to(cfg.device) for t in batch)
            loss = criterion(model(ids, mask), label)
            gap_loss += loss.item()
            loss = loss / cfg.accum_iter
            loss.backward()
            if (step % cfg.accum_iter == 0) or (step == len(train_loader)):
                torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.max_norm)
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
            if step % 10 == 0:
                print("step {} / {} of epoch {}, train/loss: {}".format(step, len(train_loader), epoch, gap_loss / 10))
                gap_loss = 0.0
