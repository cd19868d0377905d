# expect: ok
import deepspeed

class DeepSpeedLoop:
    def __init__(self, model, config):
        self.model_engine, self.optimizer, _, _ = deepspeed.initialize(model=model, config=config)

    def micro_step(self, batch):
        loss = self.model_engine(**batch).loss
        self.model_engine.backward(loss)
        self.model_engine.step()
        return loss.detach()

    def epoch(self, loader):
        for batch in loader:
            self.micro_step(batch)
