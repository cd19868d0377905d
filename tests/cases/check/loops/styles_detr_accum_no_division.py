# expect: mistake no_division
import torch


def train_one_epoch(model, criterion, data_loader, optimizer, device, epoch, max_norm=0.1, update_freq=4):
    model.train()
    optimizer.zero_grad()
    for i, (samples, targets) in enumerate(data_loader):
        samples = samples.to(device)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = criterion(model(samples), targets)
        weight_dict = criterion.weight_dict
        losses = sum(loss_dict[k] * weight_dict[k] for k in loss_dict.keys() if k in weight_dict)
        losses.backward()
        if (i + 1) % update_freq == 0 or i == len(data_loader) - 1:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
