# expect: mistake zero_grad_in_window
import os
import torch
from torch.utils.data import DataLoader
from tqdm import tqdm


def trainer(args, train_loader, dev_loader, model, optimizer, criterion, epoch=100):
    save_path = os.path.join(args.dataset, args.save_path)
    iteration = 0
    for e in range(epoch + 1):
        loss_log = []
        model.train()
        pbar = tqdm(enumerate(train_loader), total=len(train_loader))
        optimizer.zero_grad()
        for i, (audio, vertice, template, one_hot, file_name) in pbar:
            iteration += 1
            audio, vertice = audio.to(args.device), vertice.to(args.device)
            prediction = model(audio, template.to(args.device), one_hot.to(args.device))
            loss = criterion(prediction, vertice)
            optimizer.zero_grad()
            loss.backward()
            loss_log.append(loss.item())
            if i % args.gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            pbar.set_description("(Epoch {}, iteration {}) TRAIN LOSS:{:.7f}".format(e + 1, iteration, sum(loss_log) / len(loss_log)))
        if e % 25 == 0:
            torch.save(model.state_dict(), os.path.join(save_path, f"{e}_model.pth"))
