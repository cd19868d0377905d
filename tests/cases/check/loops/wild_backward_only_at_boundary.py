# expect: mistake zero_grad_in_window apply_inside_loop double_division
import torch
import torch.nn.functional as F


class LogitDistiller:
    def __init__(self, student_model, optimizer, lr_scheduler, config):
        self.student_model = student_model
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.config = config
        self.grad_accum_steps = config["train"]["grad_accum_steps"]
        self.n_forward = 0
        self.avg_loss = [0.0]

    def run(self, loader, epochs):
        for epoch in range(epochs):
            for batch in loader:
                logits = self.student_model(batch["tokens"])
                kl_loss = F.kl_div(logits.log_softmax(-1), batch["teacher"], reduction="batchmean")
                ce_loss = F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())
                weight = self.config["distill"]["kl_loss_weight"]
                total_loss = weight * kl_loss + (1 - weight) * ce_loss
                total_loss = total_loss / self.grad_accum_steps
                self.avg_loss[0] += total_loss.detach().item()
                self.n_forward += 1
                if self.n_forward % self.grad_accum_steps == 0:
                    # the window is full: backprop and update
                    total_loss.backward()
                    torch.nn.utils.clip_grad_norm_(self.student_model.parameters(), self.config["train"]["max_norm"])
                    self.optimizer.step()
                    self.lr_scheduler.step()
                    self.optimizer.zero_grad(set_to_none=True)
