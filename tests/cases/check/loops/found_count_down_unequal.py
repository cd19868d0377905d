# expect: mistake off_by_one_boundary
import torch


def train_model(net, dataloaders_dict, criterion, scheduler, optimizer, num_epochs, device):
    batch_multiplier = 3
    for epoch in range(num_epochs):
        epoch_train_loss = 0.0
        net.train()
        optimizer.zero_grad()
        count = 0
        for images, anno in dataloaders_dict['train']:
            images, anno = images.to(device), anno.to(device)
            outputs = net(images)
            loss = criterion(outputs, anno.long()) / batch_multiplier
            loss.backward()
            if count == 0:
                optimizer.step()
                optimizer.zero_grad()
                count = batch_multiplier
            count -= 1
            epoch_train_loss += loss.item() * batch_multiplier
        scheduler.step()
        print('epoch {} || TRAIN_Loss:{:.4f}'.format(epoch + 1, epoch_train_loss / len(dataloaders_dict['train'])))
