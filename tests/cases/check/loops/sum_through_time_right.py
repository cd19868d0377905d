# expect: ok
import torch


class Distillation:
    def __init__(self, student, storage, gradient_length=15):
        self.student, self.storage, self.gradient_length = student, storage, gradient_length
        self.optimizer = torch.optim.Adam(student.parameters())

    def update(self):
        loss, count = 0, 0
        for batch in self.storage.generator():
            loss = loss + torch.nn.functional.mse_loss(self.student(batch.observations), batch.actions)
            count += 1
            if count % self.gradient_length == 0:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.student.detach_hidden_state()
                loss = 0
