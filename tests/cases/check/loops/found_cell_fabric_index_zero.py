# expect: mistake off_by_one_boundary
import torch
from lightning.fabric import Fabric
from tqdm import tqdm


class CellTrainer:
    def __init__(self, args, model, optimizer, dataloader):
        self.args = args
        self.fabric = Fabric(accelerator="cuda", devices=4, strategy="ddp", precision="bf16-mixed")
        self.model, self.optimizer = self.fabric.setup(model, optimizer)
        self.train_loader = self.fabric.setup_dataloaders(dataloader)
        self.is_master = self.fabric.global_rank == 0

    def _train_one_epoch(self, epoch):
        self.model.train()
        running_loss = 0.0
        self.optimizer.zero_grad()
        for index, data in enumerate(tqdm(self.train_loader)):
            loss, final, mse_loss = self._process_batch(data)
            is_accumulating = index % self.args.grad_acc != 0
            if is_accumulating:
                with self.fabric.no_backward_sync(self.model, enabled=is_accumulating):
                    self.fabric.backward(loss / self.args.grad_acc)
            else:
                self.fabric.backward(loss / self.args.grad_acc)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1e2)
                self.optimizer.step()
                self.optimizer.zero_grad()
            running_loss += loss.item()
        return running_loss / len(self.train_loader)

    def train(self):
        for epoch in range(self.args.epochs):
            loss = self._train_one_epoch(epoch)
            if self.is_master:
                print(epoch, loss)
