# expect: ok
import time


class TrainManager:
    def __init__(self, model, optimizer, scheduler, config, logger):
        self.model, self.optimizer, self.scheduler, self.logger = model, optimizer, scheduler, logger
        self.batch_multiplier = config["training"].get("batch_multiplier", 1)
        self.epochs = config["training"]["epochs"]
        self.logging_freq = config["training"].get("logging_freq", 100)
        self.clip_grad_fun = build_gradient_clipper(config["training"])
        self.steps = 0

    def train_and_validate(self, train_iter):
        num_batches = len(train_iter)
        self.optimizer.zero_grad()
        for epoch_no in range(self.epochs):
            self.logger.info("EPOCH %d", epoch_no + 1)
            self.model.train()
            start = time.time()
            epoch_loss = 0
            for i, batch in enumerate(train_iter):
                # only update every batch_multiplier batches, and at the end of the epoch
                update = (i + 1) % self.batch_multiplier == 0 or i + 1 == num_batches
                translation_loss = self._train_batch(batch, update=update)
                epoch_loss += translation_loss
                if update and self.steps % self.logging_freq == 0:
                    self.logger.info("[Epoch %03d Step %08d] loss %10.6f %.1fs", epoch_no + 1, self.steps, translation_loss, time.time() - start)

    def _train_batch(self, batch, update=True):
        loss = self.model.get_loss_for_batch(batch)
        normalized = loss / self.batch_multiplier
        normalized.backward()
        if update:
            if self.clip_grad_fun is not None:
                self.clip_grad_fun(params=self.model.parameters())
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps += 1
        return loss.item()
