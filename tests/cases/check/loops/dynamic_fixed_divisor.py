# expect: mistake dynamic_micro_batch_divisor
class Worker:
    def update(self, batch):
        micro_batches = split_by_token_budget(batch, self.max_tokens)
        self.optimizer.zero_grad()
        for micro in micro_batches:
            loss = self.policy_loss(micro)
            (loss / self.gradient_accumulation).backward()
        self.optimizer.step()

    def run(self, batches):
        for batch in batches:
            self.update(batch)
