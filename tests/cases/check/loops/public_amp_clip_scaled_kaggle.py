# expect: mistake clip_before_unscale
import torch
from tqdm import tqdm


def train_one_epoch(model, optimizer, scheduler, dataloader, device, epoch, CONFIG):
    model.train()
    scaler = torch.cuda.amp.GradScaler()
    dataset_size, running_loss = 0, 0.0
    bar = tqdm(enumerate(dataloader), total=len(dataloader))
    for step, data in bar:
        ids = data["ids"].to(device)
        mask = data["mask"].to(device)
        targets = data["targets"].to(device)
        batch_size = ids.size(0)
        with torch.cuda.amp.autocast():
            outputs = model(ids, mask)
            loss = criterion(outputs, targets)
        loss = loss / CONFIG["n_accumulate"]
        scaler.scale(loss).backward()
        if (step + 1) % CONFIG["n_accumulate"] == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
        running_loss += loss.item() * CONFIG["n_accumulate"] * batch_size
        dataset_size += batch_size
        bar.set_postfix(Epoch=epoch, Train_Loss=running_loss / dataset_size)
    optimizer.zero_grad()
    return running_loss / dataset_size
