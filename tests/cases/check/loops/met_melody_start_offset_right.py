# expect: ok
import random

import torch


class TinyModel:
    def fit(self, windows, epochs=10, batch_size=8, grad_accum=1, lr=1e-3):
        n = len(windows)
        opt = torch.optim.Adam(self._params(), lr=lr)
        history = {"train_loss": []}
        for epoch in range(1, epochs + 1):
            order = list(range(n))
            random.shuffle(order)
            losses = []
            micro = 0
            opt.zero_grad()
            for start in range(0, n, batch_size):
                idx = order[start:start + batch_size]
                batch = [windows[i] for i in idx]
                x = torch.tensor([w[:-1] for w in batch], dtype=torch.long)
                y = torch.tensor([w[1:] for w in batch], dtype=torch.long)
                logits = self._forward(x)
                loss = self._loss(logits, y) / grad_accum
                loss.backward()
                losses.append(float(loss.detach()) * grad_accum)
                micro += 1
                if micro % grad_accum == 0 or start + batch_size >= n:
                    opt.step()
                    opt.zero_grad()
            history["train_loss"].append(round(sum(losses) / max(len(losses), 1), 6))
        return history
