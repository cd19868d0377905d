# expect: mistake tail_leak
from tqdm import tqdm


def train(epoch, branch, model, loader, criterion, optimizer, lr_scheduler, batch_multiplier, writer, device, config):
    model.train()
    running_loss = 0.0
    bar = tqdm(total=len(loader))
    for i, (images, targets) in enumerate(loader):
        images, targets = images.to(device), targets.to(device)
        output = model(images)
        loss = criterion(output["out"], targets) / batch_multiplier
        running_loss += loss.data.item() * batch_multiplier
        loss.backward()
        if (i + 1) % batch_multiplier == 0:
            optimizer.step()
            optimizer.zero_grad()
        bar.set_description(" Epoch: [{}/{}] | loss: {:.5f}".format(epoch, config["NUM_EPOCH"] - 1, loss.data.item() * batch_multiplier))
        bar.update(1)
    lr_scheduler.step()
    epoch_loss = running_loss / float(len(loader))
    writer.add_scalars("train/loss", {branch: epoch_loss}, epoch)


def main(model, loader, criterion, optimizer, lr_scheduler, writer, device, config):
    for epoch in range(config["NUM_EPOCH"]):
        train(epoch, "global", model, loader, criterion, optimizer, lr_scheduler, 8, writer, device, config)
