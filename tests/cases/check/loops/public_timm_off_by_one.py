# expect: mistake off_by_one_boundary
import torch


def train_one_epoch(model, criterion, data_loader, optimizer, device, epoch, loss_scaler, args=None):
    model.train(True)
    accum_iter = args.accum_iter
    optimizer.zero_grad()
    for data_iter_step, (samples, targets) in enumerate(data_loader):
        samples = samples.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        with torch.cuda.amp.autocast():
            outputs = model(samples)
            loss = criterion(outputs, targets)
        loss_value = loss.item()
        loss /= accum_iter
        loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters(), create_graph=False,
                    update_grad=data_iter_step % accum_iter == 0)
        if data_iter_step % accum_iter == 0:
            optimizer.zero_grad()
        torch.cuda.synchronize()
        if data_iter_step % 20 == 0:
            print(epoch, data_iter_step, loss_value)
