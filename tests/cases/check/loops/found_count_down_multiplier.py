# expect: ok
import time
import torch


def train_model(net, dataloaders_dict, criterion, scheduler, optimizer, num_epochs):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    net.to(device)
    torch.backends.cudnn.benchmark = True
    num_train_imgs = len(dataloaders_dict["train"].dataset)
    batch_size = dataloaders_dict["train"].batch_size
    iteration = 1
    logs = []
    batch_multiplier = 3
    for epoch in range(num_epochs):
        t_iter_start = time.time()
        epoch_train_loss = 0.0
        for phase in ['train', 'val']:
            if phase == 'train':
                net.train()
                optimizer.zero_grad()
            else:
                if ((epoch + 1) % 5 == 0):
                    net.eval()
                else:
                    continue
            count = 0
            for images, anno_class_imges in dataloaders_dict[phase]:
                if images.size()[0] == 1:
                    continue
                images = images.to(device)
                anno_class_imges = anno_class_imges.to(device)
                with torch.set_grad_enabled(phase == 'train'):
                    outputs = net(images)
                    loss = criterion(outputs, anno_class_imges.long()) / batch_multiplier
                    if phase == 'train':
                        loss.backward()
                        count += 1
                        if count == batch_multiplier:
                            optimizer.step()
                            optimizer.zero_grad()
                            count = 0
                        if (iteration % 10 == 0):
                            duration = time.time() - t_iter_start
                            print('iter {} || Loss: {:.4f} || 10iter: {:.4f} sec.'.format(iteration, loss.item() * batch_multiplier, duration))
                        epoch_train_loss += loss.item() * batch_multiplier
                        iteration += 1
        scheduler.step()
        print('epoch {} || TRAIN_Loss:{:.4f}'.format(epoch + 1, epoch_train_loss / num_train_imgs * batch_size))
