"""Ways to train that the hook must see rightly and leave alone: hook_cases.py CASE MICRO ACCUM [LOSSES]

Writes the losses of its micro-steps, bit for bit, into the file LOSSES.
"""
import contextlib
import copy
import sys

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

case, micro, accum = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
torch.set_num_threads(1)
features = torch.randn(480, 24)
data = TensorDataset(features, (features.sum(1) > 0).long())
body = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 32))
head = torch.nn.Linear(32, 2)


class Checkpointed(torch.nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.body, self.head, self.reentrant = body, head, reentrant

    def forward(self, inputs):
        inputs = inputs.requires_grad_()
        return self.head(checkpoint(self.body, inputs, use_reentrant=self.reentrant))


class Towers(torch.nn.Module):
    """One micro-step calls it twice, with the halves of an example."""

    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.Dropout(0.2)), head

    def forward(self, halves):
        return self.head(self.body(halves["half"]))


class Ragged(torch.nn.Module):
    """Its input is a nested tensor, which has no shape."""

    def __init__(self):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, ragged):
        return self.head(self.body(torch.stack(ragged.unbind())))


model = torch.nn.Sequential(body, head)
if case == "two_calls":
    model = Towers()
if case == "nested":
    model = Ragged()
if case.startswith("checkpointing"):
    model = Checkpointed(case.endswith("reentrant"))
if case == "compile":
    model = torch.compile(model, backend="eager")
if case == "compile_in_place":
    model.compile(backend="aot_eager")
if case == "two_optimizers":
    optimizers = [torch.optim.AdamW(body.parameters(), lr=1e-3), torch.optim.SGD(head.parameters(), lr=1e-2)]
else:
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-3)]
scale = 2.0**127 if case == "scaler_skips" else 2.0**8  # the first gradients overflow, and their steps are skipped
scaler = torch.amp.GradScaler("cpu", init_scale=scale) if case.startswith("scaler") else None
loader = DataLoader(data, batch_size=micro, shuffle=True, num_workers=2 if case == "workers" else 0)
average = None
losses = []
helper = torch.compile(lambda inputs: inputs * 1.0, backend="eager") if case == "compile_later" else None
compiled_loss = None


def loss_of(inputs, labels):
    return torch.nn.functional.cross_entropy(model(inputs).float(), labels) / accum


def outputs_of(inputs):
    if case == "nested":
        return model(torch.nested.nested_tensor(list(inputs)))
    if case != "two_calls":
        return model(inputs)
    return model({"half": inputs[:, :12]}) + model(halves={"half": inputs[:, 12:]})


def micro_step(inputs, labels):
    global compiled_loss
    if case == "compile_function" or case == "compile_later" and len(losses) > 20:
        if compiled_loss is None:
            compiled_loss = torch.compile(loss_of, backend="aot_eager", fullgraph=True)
        loss = compiled_loss(inputs, labels)
        loss.backward()
        losses.append(loss.item())
        return loss
    if helper is not None:
        inputs = helper(inputs)
    with torch.autocast("cpu", torch.bfloat16) if scaler else contextlib.nullcontext():
        loss = torch.nn.functional.cross_entropy(outputs_of(inputs).float(), labels) / accum
    (scaler.scale(loss) if scaler else loss).backward()
    losses.append(loss.item())
    return loss


def batches():
    for epoch in range(3):
        yield from loader


def train():
    global average
    window = []
    for inputs, labels in batches():
        window.append((inputs, labels))
        if case == "closure":  # as Lightning does: forward and backward inside optimizer.step()
            if len(window) == accum:
                optimizers[0].step(lambda: [micro_step(*batch) for batch in window][-1])
                optimizers[0].zero_grad()
                window.clear()
            continue
        micro_step(inputs, labels)
        if len(window) < accum:
            continue
        window.clear()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            scaler.step(optimizer) if scaler else optimizer.step()
        for optimizer in optimizers:
            optimizer.zero_grad()
        if scaler:
            scaler.update()
        if case == "average":  # a copy of the model in the middle of the run, and a pickled one
            average = copy.deepcopy(model)
            torch.save(model, sys.argv[4] + ".pt")
            with torch.no_grad():
                average(inputs)


train()
if len(sys.argv) > 4:
    with open(sys.argv[4], "w") as file:
        print(*(loss.hex() for loss in losses), file=file)
