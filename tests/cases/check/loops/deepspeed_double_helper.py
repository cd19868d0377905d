# expect: mistake double_division
import deepspeed

class DeepSpeedLoop:
    def __init__(self, model, config, accumulation_steps):
        self.model_engine, self.optimizer, _, _ = deepspeed.initialize(model=model, config=config)
        self.accumulation_steps = accumulation_steps

    def micro_step(self, batch):
        loss = self.model_engine(**batch).loss
        loss = loss / self.accumulation_steps
        self.model_engine.backward(loss)
        self.model_engine.step()
        return loss

    def epoch(self, loader):
        for batch in loader:
            self.micro_step(batch)
