"""What bench/finders.py runs in processes of their own: one training of MiniLM, and two tools that look for its batch size.

    peer_finders.py script MODEL DATA --micro 8 --accum 4 [--steps 10] [--limit BYTES]
    peer_finders.py accelerate|lightning MODEL DATA --effective-batch 32 [--limit BYTES]

All import the same packages and then limit their own address space, so that the limit means the same to each of them and an
allocation that it refuses raises what these tools catch. The last line is one JSON document.
"""
import argparse
import json
import os
import resource
import statistics
import tempfile
import time

import accelerate.utils.memory
import lightning
import lightning.pytorch.tuner.batch_size_scaling as lightning_scaling
import torch
import transformers
from torch.utils.data import DataLoader

LEARNING_RATE = 5e-5
LENGTH = 96  # tokens of every example, so that every micro-batch of a size needs the same memory
PROBE_STEPS = 10  # what a trial of `batchwright tune` runs


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmPeak:"))


def limit_address_space(limit):
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def rows_of(model_folder, data, most=2048):
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    rows = []
    with open(data) as file:
        for line in file:
            row = json.loads(line)
            encoded = tokenizer(row["text"], truncation=True, padding="max_length", max_length=LENGTH)
            rows.append(dict(encoded, labels=int(row["label"] == "positive")))
            if len(rows) == most:
                break
    return rows, transformers.DataCollatorWithPadding(tokenizer)


def loader_of(rows, collate, batch_size):
    return DataLoader(rows, batch_size=batch_size, shuffle=True, collate_fn=collate, drop_last=True,
                      generator=torch.Generator().manual_seed(0))


def classifier(model_folder):
    torch.manual_seed(0)
    return transformers.AutoModelForSequenceClassification.from_pretrained(model_folder, num_labels=2)


def for_ever(loader):
    while True:
        yield from loader


def train(model_folder, rows, collate, micro, accum, steps):
    """Seconds of each optimizer step."""
    model = classifier(model_folder).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    batches = for_ever(loader_of(rows, collate, micro))
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        for _ in range(accum):
            (model(**next(batches)).loss / accum).backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - begin)
    return seconds


def counted(function, counts):
    """function(exception) says whether it was memory: how often it said so is what is counted."""
    def judge(exception):
        memory = function(exception)
        counts["out_of_memory"] += bool(memory)
        return memory
    return judge


def script(options, rows, collate):
    seconds = train(options.model, rows, collate, options.micro, options.accum, options.steps)
    return {"step_seconds": statistics.median(seconds[2:] or seconds), "peak_bytes": peak_bytes()}


def with_accelerate(options, rows, collate, counts):
    """As its example by_feature/automatic_gradient_accumulation.py uses it."""
    memory = accelerate.utils.memory
    memory.should_reduce_batch_size = counted(memory.should_reduce_batch_size, counts)
    found = {}

    @memory.find_executable_batch_size(starting_batch_size=options.effective_batch)
    def inner(batch_size):
        accumulation = options.effective_batch // batch_size
        train(options.model, rows, collate, batch_size, accumulation, PROBE_STEPS)
        found.update(micro=batch_size, accum=accumulation)

    inner()
    return found


class Module(lightning.LightningModule):
    def __init__(self, model_folder, rows, collate):
        super().__init__()
        self.model, self.rows, self.collate, self.batch_size = classifier(model_folder), rows, collate, 8

    def training_step(self, batch, _):
        return self.model(**batch).loss

    def train_dataloader(self):
        return loader_of(self.rows, self.collate, self.batch_size)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=LEARNING_RATE)


def with_lightning(options, rows, collate, counts):
    """8 examples by accumulation to start with; the finder doubles its batch size from 2 on until it fails."""
    lightning_scaling.is_oom_error = counted(lightning_scaling.is_oom_error, counts)
    module = Module(options.model, rows, collate)
    accumulation = options.effective_batch // module.batch_size
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu", max_steps=1, accumulate_grad_batches=accumulation, default_root_dir=folder, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
            callbacks=[lightning.pytorch.callbacks.BatchSizeFinder(mode="power", max_val=options.effective_batch * 4)])
        trainer.fit(module)
    return {"micro": module.batch_size, "accum": trainer.accumulate_grad_batches}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=["script", "accelerate", "lightning"])
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--micro", type=int)
    parser.add_argument("--accum", type=int)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--effective-batch", type=int)
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    transformers.logging.set_verbosity_error()
    rows, collate = rows_of(options.model, options.data)
    limit_address_space(options.limit)
    begin, counts = time.monotonic(), {"out_of_memory": 0}
    try:
        if options.tool == "script":
            result = script(options, rows, collate)
        else:
            tool = with_accelerate if options.tool == "accelerate" else with_lightning
            result = tool(options, rows, collate, counts)
    except Exception as e:
        if options.tool == "script":
            raise
        result = {"died": f"{type(e).__name__}: {str(e).splitlines()[0][:200]}"}
    print(json.dumps(dict(result, **counts, seconds=time.monotonic() - begin)))


if __name__ == "__main__":
    main()
