# expect: ok
import torch


def train(hparams, model, optimizer, criterion, train_loader, scaler):
    iteration = 0
    for epoch in range(hparams.epochs):
        model.zero_grad()
        for i, batch in enumerate(train_loader):
            x, y = model.parse_batch(batch)
            with torch.cuda.amp.autocast(enabled=hparams.fp16_run):
                y_pred = model(x)
                loss = criterion(y_pred, y)
            reduced_loss = loss.item()
            if hparams.fp16_run:
                scaler.scale(loss / hparams.grad_accum).backward()
            else:
                (loss / hparams.grad_accum).backward()
            if (i + 1) % hparams.grad_accum == 0 or (i + 1) == len(train_loader):
                if hparams.fp16_run:
                    scaler.unscale_(optimizer)
                    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), hparams.grad_clip_thresh)
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), hparams.grad_clip_thresh)
                    optimizer.step()
                model.zero_grad()
                iteration += 1
            print("Train loss {} {:.6f}".format(iteration, reduced_loss))
