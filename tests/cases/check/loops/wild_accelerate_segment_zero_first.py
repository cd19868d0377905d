# expect: mistake zero_grad_in_window
from accelerate import Accelerator
from tqdm import tqdm


class VolumeTrainer:
    def __init__(self, model, optimizer, criterion, scheduler, train_dataloader, grad_accumulate_steps, num_epochs):
        self.accelerator = Accelerator(gradient_accumulation_steps=grad_accumulate_steps)
        self.model, self.optimizer, self.train_dataloader, self.scheduler = self.accelerator.prepare(
            model, optimizer, train_dataloader, scheduler)
        self.criterion = criterion
        self.num_epochs = num_epochs
        self.current_epoch = 0

    def _train_step(self):
        self.model.train()
        epoch_loss = 0.0
        pbar = tqdm(enumerate(self.train_dataloader), total=len(self.train_dataloader),
                    disable=not self.accelerator.is_main_process)
        for index, raw_data in pbar:
            with self.accelerator.accumulate(self.model):
                data, labels = raw_data["image"], raw_data["label"]
                self.optimizer.zero_grad(set_to_none=True)
                predicted = self.model.forward(data)
                loss = self.criterion(predicted, labels)
                self.accelerator.backward(loss)
                self.optimizer.step()
                epoch_loss += loss.item()
                pbar.set_postfix(loss=f"{loss.item():.4f}")
        return epoch_loss / len(self.train_dataloader)

    def train(self):
        for epoch in range(self.num_epochs):
            self.current_epoch = epoch
            self._train_step()
            self.scheduler.step()
