# expect: mistake off_by_one_boundary no_division
import numpy as np
from tqdm import tqdm


def main(config, model, train_loader, criterion, optimizer, device):
    for epoch in range(1, config.train.epochs + 1):
        print("epoch:" + str(epoch))
        model.train()
        train_loss = []
        virtual_batch_counter = 0
        train_range = tqdm(train_loader)
        for image, target in train_range:
            image, y_true = image.to(device), target.to(device)
            y_pred = model(image)
            loss = criterion(y_pred, y_true)
            loss.backward()
            train_loss.append(loss.item())
            train_range.set_description("TRAIN -> epoch: %4d || loss: %4.4f" % (epoch, np.mean(train_loss)))
            if virtual_batch_counter % config.train.virtual_batch_size == 0 or virtual_batch_counter + 1 == len(train_loader):
                optimizer.step()
                optimizer.zero_grad()
            virtual_batch_counter += 1
