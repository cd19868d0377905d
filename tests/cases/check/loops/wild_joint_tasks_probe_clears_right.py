# expect: ok
import torch
from tqdm import tqdm


class JointTrainer:
    def __init__(self, model, emb_loader, rerank_loader, optimizer, scheduler, grad_accum_steps=4, conflict_every=0):
        self.model = model
        self.emb_loader, self.rerank_loader = emb_loader, rerank_loader
        self.optimizer, self.scheduler = optimizer, scheduler
        self.grad_accum_steps = grad_accum_steps
        self.conflict_every = conflict_every
        self.max_grad_norm = 1.0

    def _embedding_step(self, it):
        batch = next(it)
        return self.emb_loss_fn(self.model.encode(batch["q"]), self.model.encode(batch["p"]))

    def _reranking_step(self, it):
        batch = next(it)
        return self.rerank_loss_fn(self.model.scores(batch["x"]), batch["labels"]) * self.rerank_weight

    def _conflicts(self, emb_iter, rerank_iter):
        self.optimizer.zero_grad()
        self._embedding_step(emb_iter).backward()
        first = {n: p.grad.clone() for n, p in self.model.named_parameters() if p.grad is not None}
        self.optimizer.zero_grad()
        self._reranking_step(rerank_iter).backward()
        cos = {n: torch.cosine_similarity(first[n].flatten(), p.grad.flatten(), dim=0).item()
               for n, p in self.model.named_parameters() if n in first}
        self.optimizer.zero_grad()
        return cos

    def train(self, epochs, log_every=10):
        global_step = 0
        loss_window = []
        self.optimizer.zero_grad()
        for epoch in range(epochs):
            emb_iter, rerank_iter = forever(self.emb_loader), forever(self.rerank_loader)
            steps_in_epoch = len(self.emb_loader) + len(self.rerank_loader)
            schedule = self._build_task_schedule(steps_in_epoch)
            for step_in_epoch in tqdm(range(steps_in_epoch)):
                if schedule[step_in_epoch] == "embedding":
                    loss = self._embedding_step(emb_iter)
                else:
                    loss = self._reranking_step(rerank_iter)
                scaled_loss = loss / self.grad_accum_steps
                scaled_loss.backward()
                loss_window.append(loss.item())
                if (step_in_epoch + 1) % self.grad_accum_steps == 0:
                    norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
                    self.optimizer.step()
                    self.scheduler.step()
                    self.optimizer.zero_grad()
                    global_step += 1
                    if self.conflict_every > 0 and global_step % self.conflict_every == 0:
                        print(self._conflicts(emb_iter, rerank_iter))
                    if global_step % log_every == 0:
                        print(global_step, sum(loss_window) / len(loss_window), float(norm))
                        loss_window.clear()
            if (step_in_epoch + 1) % self.grad_accum_steps != 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
                global_step += 1
