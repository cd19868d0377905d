# expect: mistake log_factor
import torch
from tqdm import tqdm


def train_one_epoch(model, optimizer, dataloader, device, epoch, CFG):
    model.train()
    optimizer.zero_grad()
    dataset_size, running_loss = 0, 0.0
    bar = tqdm(enumerate(dataloader), total=len(dataloader))
    for step, data in bar:
        images = data["image"].to(device, dtype=torch.float)
        targets = data["target"].to(device, dtype=torch.float)
        outputs = model(images).squeeze()
        loss = criterion(outputs, targets)
        loss = loss / CFG.n_accumulate
        loss.backward()
        if (step + 1) % CFG.n_accumulate == 0 or step + 1 == len(dataloader):
            optimizer.step()
            optimizer.zero_grad()
        running_loss += loss.item() * images.size(0)
        dataset_size += images.size(0)
        epoch_loss = running_loss / dataset_size
        bar.set_postfix(Epoch=epoch, Train_Loss=epoch_loss)
    return epoch_loss
