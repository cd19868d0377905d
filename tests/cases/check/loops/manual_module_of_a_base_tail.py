# expect: mistake tail_leak
from .base import ProjectModule


class Segmenter(ProjectModule):
    def __init__(self, settings):
        super().__init__(settings)
        self.automatic_optimization = False
        self.every = settings.every

    def training_step(self, batch, batch_idx):
        images, masks = batch
        loss = self.criterion(self.net(images), masks)
        self.manual_backward(loss / self.every)
        if (batch_idx + 1) % self.every == 0:
            optimizer = self.optimizers()
            optimizer.step()
            optimizer.zero_grad()
