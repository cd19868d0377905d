"""The peer: one run of the Transformers Trainer, with PEFT for LoRA, at one split. Prints one JSON line.

    peer_step.py MODEL TOKENS WINDOWS.json --split 8x4 [--method lora|full] [--batching longest|group] [--evaluate ROWS.json]

It trains on the rows of WINDOWS (a list of row lists, one a step), in that order (group: the Trainer's own
group_by_length order of the same rows). Everything is the Trainer's default unless an option here names it; dropout is
the model's. OMP_WAIT_POLICY is whatever the environment says. Memory is this process's highest resident size less what it
had after its imports: what training took above the bare process.
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "engine"))
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from token_file import TokenFile  # noqa: E402
from transformers.trainer_callback import TrainerCallback  # noqa: E402


def resident_bytes(field):
    """VmRSS (now) or VmHWM (the highest so far) of this process."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


class Rows(torch.utils.data.Dataset):
    def __init__(self, tokens, rows):
        self.items = []
        for row in rows:
            begin, end = int(tokens.offsets[row]), int(tokens.offsets[row + 1])
            labels = tokens.token_labels[begin:end].tolist() if tokens.task == "causal-lm" else int(tokens.labels[row])
            self.items.append({"input_ids": tokens.all_ids[begin:end].tolist(), "attention_mask": [1] * (end - begin),
                               "labels": labels})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class OrderedTrainer(transformers.Trainer):
    """The Trainer with the order of the examples given."""

    def _get_train_sampler(self, *arguments):
        if self.args.group_by_length:
            return super()._get_train_sampler(*arguments)
        return torch.utils.data.SequentialSampler(self.train_dataset)


class Recorder(TrainerCallback):
    def __init__(self):
        self.ends, self.losses = [], []

    def on_step_end(self, *_, **__):
        self.ends.append(time.perf_counter())

    def on_log(self, _, __, ___, logs=None, **____):
        if logs and "loss" in logs:
            self.losses.append(float(logs["loss"]))


def load_model(options, tokens):
    if tokens.task == "causal-lm":
        model = transformers.AutoModelForCausalLM.from_pretrained(options.model)
        kind = {"task_type": "CAUSAL_LM"}
    else:
        model = transformers.AutoModelForSequenceClassification.from_pretrained(options.model,
                                                                                num_labels=len(tokens.label_names))
        kind = {"task_type": "SEQ_CLS", "modules_to_save": ["classifier"]}
    if options.method == "full":
        return model
    return peft.get_peft_model(model, peft.LoraConfig(
        r=options.lora_rank, lora_alpha=2 * options.lora_rank, lora_dropout=options.lora_dropout,
        target_modules="all-linear", **kind))


def collator_of(options, tokens):
    if tokens.task == "causal-lm":  # blocks of one length
        return transformers.default_data_collator
    return transformers.DataCollatorWithPadding(transformers.AutoTokenizer.from_pretrained(options.model))


def train(options, tokens, windows):
    micro, accumulation = (int(part) for part in options.split.split("x"))
    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=micro, gradient_accumulation_steps=accumulation,
        max_steps=len(windows), learning_rate=options.learning_rate, max_grad_norm=1.0, seed=options.seed, use_cpu=True,
        logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True, per_device_eval_batch_size=32,
        group_by_length=options.batching == "group", dataloader_num_workers=0)
    recorder = Recorder()
    model, collator = load_model(options, tokens), collator_of(options, tokens)
    trainer = OrderedTrainer(model=model, args=arguments, data_collator=collator, callbacks=[recorder],
                             train_dataset=Rows(tokens, [row for window in windows for row in window]))
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    return trainer, recorder


def accuracy(trainer, tokens, rows):
    logits, labels, _ = trainer.predict(Rows(tokens, rows))
    return float((logits.argmax(-1) == labels).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "tokens", "windows"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--split", default="32x1")
    parser.add_argument("--method", choices=("lora", "full"), default="lora")
    parser.add_argument("--lora-rank", type=int, default=16)
    parser.add_argument("--lora-dropout", type=float, default=0.05)
    parser.add_argument("--batching", choices=("longest", "group"), default="longest")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluate", type=pathlib.Path)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    bare = resident_bytes("VmRSS")
    torch.manual_seed(options.seed)
    tokens, windows = TokenFile(options.tokens), json.loads(options.windows.read_text())
    trainer, recorder = train(options, tokens, windows)
    peak = resident_bytes("VmHWM")
    result = {
        "transformers": transformers.__version__, "peft": peft.__version__, "torch": torch.__version__,
        "threads": torch.get_num_threads(), "wait_policy": os.environ.get("OMP_WAIT_POLICY"),
        "step_seconds": [b - a for a, b in zip(recorder.ends, recorder.ends[1:])],  # from the second step on
        "losses": recorder.losses, "peak_bytes_above_bare": peak - bare}
    if options.evaluate:
        result["accuracy"] = accuracy(trainer, tokens, json.loads(options.evaluate.read_text()))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
