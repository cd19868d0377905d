# expect: ok
import torch


class SolverTrainer:
    def __init__(self, model, tokenizer, optimizer, accumulation_steps=1):
        self.model = model
        self.tokenizer = tokenizer
        self.optimizer = optimizer
        self.criterion = torch.nn.CrossEntropyLoss(ignore_index=-100)
        self.accumulation_steps = accumulation_steps
        self.step = 0

    def _back_propagation(self, loss):
        self.step += 1
        loss = loss / self.accumulation_steps
        loss.backward()
        if self.step % self.accumulation_steps == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def forward(self, instructions, outputs):
        self.model.train()
        tokens, labels = self.prepare_for_training(instructions, outputs)
        logits = self.model.forward(tokens)
        loss = self.criterion(logits.view(-1, logits.size(-1)), labels.view(-1).to(logits.device))
        self._back_propagation(loss)
        return {"loss": loss.item()}


class DistillingTrainer(SolverTrainer):
    def distill(self, instructions, outputs, teacher_logits, alpha=1.0):
        tokens, labels = self.prepare_for_training(instructions, outputs)
        logits = self.model.forward(tokens)
        ce = self.criterion(logits.view(-1, logits.size(-1)), labels.view(-1))
        kl = self.kl_loss(logits, teacher_logits, labels)
        loss = ce + alpha * kl
        self._back_propagation(loss)
        return {"loss": loss.item(), "kl": kl.item()}
