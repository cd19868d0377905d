"""A plain loop that accumulates gradients, with one mistake planted: accumulation_loop.py MICRO ACCUM [MISTAKE]

40 rows: an effective batch of 16 leaves a partial window of 8 at the end of each epoch.
"""
import sys

import torch

micro, accum = int(sys.argv[1]), int(sys.argv[2])
mistake = sys.argv[3] if len(sys.argv) > 3 else "none"
torch.set_num_threads(1)
torch.manual_seed(0)
ROWS, LENGTH, WORDS = 40, 12, 50
lengths = torch.arange(ROWS) % 9 + 3
ids = torch.randint(1, WORDS, (ROWS, LENGTH)) * (torch.arange(LENGTH) < lengths[:, None])
tags = torch.where(ids > 0, ids % 3, -100)
labels = ids.sum(1) % 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, 16)
        self.norm = torch.nn.BatchNorm1d(16) if mistake == "not_equivalent_by_nature" else torch.nn.Identity()
        self.dropout = torch.nn.Dropout(0.3)
        self.head = torch.nn.Linear(16, 3 if mistake == "token_mean_of_means" else 2)

    def forward(self, ids):
        hidden = self.embedding(ids)
        if mistake != "token_mean_of_means":
            hidden = self.norm(hidden.mean(1))
        return self.head(self.dropout(hidden))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
steps = 60 * (accum if mistake == "sched_units" else 1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)


def loss_of(rows):
    if mistake == "token_mean_of_means":
        return torch.nn.functional.cross_entropy(model(ids[rows]).transpose(1, 2), tags[rows])
    return torch.nn.functional.cross_entropy(model(ids[rows]), labels[rows])


def step():
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if mistake != "sched_per_micro_step":
        scheduler.step()
    if mistake != "missing_zero_grad":
        optimizer.zero_grad()


if mistake == "random_data":
    torch.seed()
for epoch in range(100):
    order = torch.randperm(ROWS) if mistake in ("random_data", "order_of_data") else torch.arange(ROWS)
    batches = list(order.split(micro))
    if mistake == "order_of_data":  # the batches are shuffled, so which rows share a window depends on their size
        batches = [batches[i] for i in torch.randperm(len(batches))]
    if mistake in ("tail_dropped",):
        optimizer.zero_grad()
    left = len(batches) % accum
    for i, rows in enumerate(batches):
        in_tail = i >= len(batches) - left
        divisor = left if in_tail and mistake not in ("tail_full_divisor", "tail_leak") else accum
        loss = loss_of(rows)
        if mistake != "no_division":
            loss = loss / divisor
        if mistake == "double_division":
            loss = loss / divisor
        if mistake == "zero_grad_in_window":
            optimizer.zero_grad()
        loss.backward()
        if mistake == "clip_per_micro_step":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if mistake == "sched_per_micro_step":
            scheduler.step()
        whole = (i + 1) % accum == 0
        if mistake == "off_by_one_boundary":
            whole = i % accum == 0
        last = i + 1 == len(batches) and mistake not in ("tail_leak", "tail_dropped")
        if whole or last or mistake == "apply_inside_loop":
            step()
