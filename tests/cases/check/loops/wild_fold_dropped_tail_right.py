# expect: ok
import time


class FoldTrainer:
    def __init__(self, model, train_loader, criterion, optimizer, fold, accumulation_steps, device):
        self.model, self.train_loader, self.criterion = model, train_loader, criterion
        self.optimizer, self.fold, self.device = optimizer, fold, device
        self.accumulation_steps = accumulation_steps

    def forward(self, images, masks):
        images, masks = images.to(self.device), masks.to(self.device)
        outputs = self.model(images)
        return self.criterion(outputs, masks), outputs

    def train_one_epoch(self, epoch):
        self.model.train()
        running_loss = 0.0
        self.optimizer.zero_grad()
        start = time.time()
        print(f"Fold {self.fold} | Epoch {epoch + 1}")
        for batch_idx, (images, masks, _) in enumerate(self.train_loader):
            loss, outputs = self.forward(images, masks)
            loss = loss / self.accumulation_steps
            loss.backward()
            if (batch_idx + 1) % self.accumulation_steps == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            running_loss += loss.item() * self.accumulation_steps
            if (batch_idx + 1) % 20 == 0:
                print(f"  [{batch_idx + 1}/{len(self.train_loader)}] loss {running_loss / (batch_idx + 1):.4f}")
        epoch_loss = running_loss / len(self.train_loader)
        print(f"{epoch_loss:.4f} in {time.time() - start:.1f}s")
        return epoch_loss
