# expect: ok
class Trainer:
    def __init__(self, model, optim, train_loss, accum_count):
        self.model, self.optim, self.train_loss = model, optim, train_loss
        self.accum_count = accum_count[0]

    def train(self, iterator):
        for i, (batches, normalization) in enumerate(self.accum_batches(iterator)):
            self.gradient_accumulation(batches, normalization)

    def gradient_accumulation(self, true_batches, normalization):
        if self.accum_count > 1:
            self.optim.zero_grad()
        for k, batch in enumerate(true_batches):
            if self.accum_count == 1:
                self.optim.zero_grad()
            loss = self.train_loss(batch, self.model(batch))
            loss = loss / normalization
            loss.backward()
        self.optim.step()
