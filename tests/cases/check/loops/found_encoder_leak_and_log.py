# expect: mistake tail_leak log_factor
from torch.optim import AdamW
from tqdm import tqdm


class Trainer:
    def __init__(self, model, dataloader, args):
        self.accumulation_steps = args["train"].accumulation_steps
        self.model = model
        self.dataloader = dataloader
        self.epochs = args["train"].epochs
        self.optimizer = AdamW(self.model.encoder.parameters())
        self.model.encoder.train()
        self.progress = tqdm(self.dataloader, total=len(self.dataloader))

    def train(self) -> None:
        for epoch in range(self.epochs):
            print(f"Epoch {epoch+1}/{self.epochs}")
            for step, item in enumerate(self.progress):
                if item is None:
                    continue
                outputs = self.model(item)
                loss = outputs["loss"]
                loss /= self.accumulation_steps
                loss.backward()
                if (step + 1) % self.accumulation_steps == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    self.progress.set_postfix({"loss": loss.item()}, refresh=True)
