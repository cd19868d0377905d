# expect: mistake no_division
import torch
from tqdm import tqdm


def train_single_epoch(train_dataloader, model, criterion, optimizer, scheduler, opt, epoch):
    batch_times, losses = [], []
    running_loss, dataset_size = 0, 0
    scaler = torch.cuda.amp.GradScaler()
    model.train()
    optimizer.zero_grad()
    bar = tqdm(enumerate(train_dataloader), total=len(train_dataloader))
    for i, (imgs, country, city, labels) in bar:
        batch_size = imgs.shape[0]
        imgs, labels1, labels2 = imgs.to(opt.device), country.to(opt.device), city.to(opt.device)
        with torch.cuda.amp.autocast():
            outs1, outs2 = model(imgs)
            loss1 = criterion(outs1, labels1)
            loss2 = criterion(outs2, labels2)
            loss = loss1 + loss2
            # loss /= opt.accumulate
        scaler.scale(loss).backward()
        if ((i + 1) % opt.accumulate == 0) or (i + 1 == len(train_dataloader)):
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        running_loss += loss.item() * batch_size
        dataset_size += batch_size
        epoch_loss = running_loss / dataset_size
        if (i + 1) % 100 == 0:
            bar.set_postfix(Epoch=epoch, Train_Loss=epoch_loss)
    scheduler.step()
