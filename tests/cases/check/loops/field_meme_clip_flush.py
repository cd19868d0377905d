# expect: ok
import torch


class Runner:
    def __init__(self, config):
        self.config = config

    def fit(self, model, train_loader, val_loader, criterion, optimizer, scheduler):
        history = []
        for epoch in range(self.config.epochs):
            model.train()
            running, correct, total = 0.0, 0, 0
            optimizer.zero_grad()
            for step_idx, (img_inputs, text_inputs, targets, _) in enumerate(train_loader):
                img_inputs = {k: v.to(self.config.device) for k, v in img_inputs.items()}
                text_inputs = {k: v.to(self.config.device) for k, v in text_inputs.items()}
                targets = targets.to(self.config.device)
                logits = model(**img_inputs, **text_inputs).logits_per_image
                loss = criterion(logits, targets)
                loss_scaled = loss / self.config.gradient_accumulation_steps
                loss_scaled.backward()
                running += loss.item() * len(targets)
                preds = torch.argmax(logits, dim=1)
                correct += (preds == targets).sum().item()
                total += len(targets)
                if (step_idx + 1) % self.config.gradient_accumulation_steps == 0 or (step_idx + 1) == len(train_loader):
                    optimizer.step()
                    scheduler.step()
                    optimizer.zero_grad()
            history.append((running / max(total, 1), correct / max(total, 1)))
            print(f"epoch {epoch}: loss {history[-1][0]:.4f} acc {history[-1][1]:.4f}")
        return history
