"""Writes tests/cases/check/{logs,logs_held_out}: logs of small real trainings, right ones and ones with one planted
mistake, in the formats that people have. Needs torch; `python make_logs.py` rewrites every case it names."""
import json
import math
import pathlib
import shutil

import torch

HERE = pathlib.Path(__file__).parent


class Task:
    """A classifier of token bags (classes) or a next-token model (vocabulary), small enough to train in a second."""

    def __init__(self, seed, classes=0, vocabulary=0, examples=640):
        self.random = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.lm = vocabulary > 0
        self.size = vocabulary or classes
        tokens = vocabulary or 120
        length = 12
        if self.lm:
            step = torch.randint(1, 7, (examples, 1), generator=self.random)
            start = torch.randint(0, tokens, (examples, 1), generator=self.random)
            noise = torch.randint(0, 3, (examples, length + 1), generator=self.random)
            self.x = (start + step * torch.arange(length + 1) + noise) % tokens
        else:
            self.y = torch.randint(0, classes, (examples,), generator=self.random)
            base = torch.randint(0, tokens, (examples, length), generator=self.random)
            mark = torch.rand(examples, length, generator=self.random) < 0.35
            self.x = torch.where(mark, self.y[:, None] * 7 + base % 7, base)
        width = 48
        self.model = torch.nn.Sequential(torch.nn.Embedding(tokens, width), torch.nn.Linear(width, width), torch.nn.GELU(),
                                         torch.nn.Linear(width, self.size))
        with torch.no_grad():
            self.model[3].weight.mul_(0.3)

    def loss(self, index):
        if self.lm:
            rows = self.x[index]
            logits = self.model(rows[:, :-1])
            return torch.nn.functional.cross_entropy(logits.reshape(-1, self.size), rows[:, 1:].reshape(-1))
        hidden = self.model[2](self.model[1](self.model[0](self.x[index]))).mean(1)
        return torch.nn.functional.cross_entropy(self.model[3](hidden), self.y[index])


def rate(schedule, position, warmup):
    if warmup > 0 and position < warmup:
        return position / warmup
    rest = (position - warmup) / max(1e-9, 1 - warmup)
    if schedule == "constant":
        return 1.0
    if schedule == "linear":
        return max(0.0, 1 - rest)
    return max(0.0, 0.5 * (1 + math.cos(math.pi * rest)))


def train(seed=0, classes=4, vocabulary=0, examples=640, micro=4, accum=8, world=1, epochs=3, lr=2e-3, schedule="linear",
          warmup=0.0, every=1, evals=False, mistake=""):
    """Runs one training; `mistake` plants a fault. Returns (records, steps in all). World size is simulated by splitting
    the data: one process's view, as rank 0 logs it."""
    task = Task(seed, classes, vocabulary, examples)
    held = torch.arange(examples // 10)
    data = torch.arange(examples // 10, examples)
    per_epoch = math.ceil(len(data) / (micro * world))
    steps_per_epoch = per_epoch // accum if mistake in ("tail_leak", "drop") else math.ceil(per_epoch / accum)
    if mistake == "cross":
        total = per_epoch * epochs // accum
    else:
        total = steps_per_epoch * epochs
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=lr)
    records, step, pending, window_loss, micro_seen = [], 0, 0, [], 0
    for epoch in range(epochs):
        order = data[torch.randperm(len(data), generator=task.random)]
        for i in range(per_epoch):
            index = order[i * micro * world:(i + 1) * micro * world]
            loss = task.loss(index)
            scale = {"no_division": 1.0, "times": 1.0, "double": 1 / accum ** 2, "world": world / accum}.get(mistake, 1 / accum)
            (loss * scale).backward()
            window_loss.append(loss.item())
            pending += 1
            micro_seen += 1
            last = i + 1 == per_epoch and mistake not in ("tail_leak", "drop", "cross")
            boundary = micro_seen % accum == 0 if mistake == "cross" else (i + 1) % accum == 0
            if not (boundary or last):
                continue
            if last and pending < accum and mistake != "tail_full":
                for p in task.model.parameters():
                    p.grad.mul_(accum / pending)
            norm = torch.nn.utils.clip_grad_norm_(task.model.parameters(), 1e9).item()
            position = {"sched_fast": step * accum, "sched_slow": step / accum, "sched_world": step * world,
                        "sched_world_slow": step / world}.get(mistake, step) / total
            if mistake == "sched_fast" or mistake == "sched_world":
                position = min(position, 1.0)
            wide = {"warm_long": warmup * accum, "warm_never": 3.0}.get(mistake, warmup)
            now = lr * rate(schedule, position, wide)
            for group in optimizer.param_groups:
                group["lr"] = now
            if mistake != "no_zero":  # clipping in place would cut the leftover sum
                torch.nn.utils.clip_grad_norm_(task.model.parameters(), 1.0)
            optimizer.step()
            if mistake != "no_zero":
                optimizer.zero_grad()
            step += 1
            mean = sum(window_loss) / len(window_loss)
            if mistake == "tail_full":
                mean *= len(window_loss) / accum
            shown = {"times": mean * accum, "log_times": mean * accum, "log_small": mean / accum, "world": mean * world,
                     "half": mean / 2}.get(mistake, mean)
            if mistake == "scaled":
                norm *= 65536
            at = micro_seen / per_epoch if mistake == "cross" else epoch + (i + 1) / per_epoch
            if step % every == 0 or step == total:
                records.append({"step": step, "epoch": at, "loss": shown, "grad_norm": norm, "learning_rate": now})
            window_loss, pending = [], 0
        if mistake == "drop":
            optimizer.zero_grad()
            window_loss, pending = [], 0
        if mistake == "tail_leak":
            window_loss = []
        if evals:
            with torch.no_grad():
                records.append({"step": step, "epoch": float(epoch + 1), "eval_loss": task.loss(held).item()})
    return records, total


def as_state(records, total, epochs, micro):
    history = [{k: (round(v, 6) if k == "epoch" else v) for k, v in r.items()} for r in records]
    for h in history:
        h["epoch"] = round(h["epoch"], 4)
        if "loss" in h:
            h["loss"] = round(h["loss"], 4)
    return json.dumps({"best_metric": None, "epoch": history[-1]["epoch"], "global_step": records[-1]["step"],
                       "is_world_process_zero": True, "log_history": history, "logging_steps": 1, "max_steps": total,
                       "num_train_epochs": epochs, "train_batch_size": micro}, indent=2) + "\n"


def as_printed(records, total):
    lines = ["Loading checkpoint shards: 100%|##########| 2/2 [00:01<00:00,  1.31it/s]"]
    for r in records:
        lines.append(f" {100 * r['step'] // total:3d}%|###       | {r['step']}/{total} [00:{r['step'] % 60:02d}<01:10,  3.21it/s]")
        if "loss" in r:
            lines.append(str({"loss": round(r["loss"], 4), "grad_norm": r["grad_norm"], "learning_rate": r["learning_rate"],
                              "epoch": round(r["epoch"], 2)}))
        else:
            lines.append(str({"eval_loss": r["eval_loss"], "eval_runtime": 1.2, "epoch": round(r["epoch"], 2)}))
    lines.append(str({"train_runtime": 71.2, "train_samples_per_second": 31.1, "train_loss": 0.71, "epoch": 3.0}))
    return "\n".join(lines) + "\n"


def as_lines(records, _total):
    return "".join(json.dumps({k: round(v, 7) for k, v in r.items()}) + "\n" for r in records)


def as_text(records, total):
    rows = []
    for r in records:
        if "loss" in r:
            rows.append(f"[INFO] step {r['step']:4d}/{total} | loss {r['loss']:.4f} | lr {r['learning_rate']:.3e} | "
                        f"grad norm {r['grad_norm']:.3f} | epoch {r['epoch']:.3f}")
        else:
            rows.append(f"[INFO] step {r['step']} | val loss {r['eval_loss']:.4f}")
    return "\n".join(rows) + "\n"


def as_csv(records, _total):
    rows = ["step,epoch,loss,grad_norm,learning_rate"]
    rows += [f"{r['step']},{r['epoch']:.4f},{r['loss']:.5f},{r['grad_norm']:.4f},{r['learning_rate']:.6g}" for r in records if "loss" in r]
    return "\n".join(rows) + "\n"


WRITERS = {"printed.log": as_printed, "log.jsonl": as_lines, "train.log": as_text, "log.csv": as_csv}


def arguments(options, extra=None):
    args = {"output_dir": "out", "per_device_train_batch_size": options.get("micro", 4),
            "gradient_accumulation_steps": options.get("accum", 8), "num_train_epochs": options.get("epochs", 3),
            "learning_rate": options.get("lr", 2e-3), "lr_scheduler_type": options.get("schedule", "linear")}
    if options.get("warmup"):
        args["warmup_ratio"] = options["warmup"]
    if options.get("world", 1) > 1:
        args["world_size"] = options["world"]
    examples = options.get("examples", 640)
    args["num_train_examples"] = examples - examples // 10
    args.update(extra or {})
    return json.dumps(args, indent=2) + "\n"


def case(group, name, kinds, form, options, extra=None, with_arguments=True):
    folder = HERE / group / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_expect(folder, kinds)
    write_log(folder, "", form, options)
    if with_arguments:
        (folder / "training_args.json").write_text(arguments(options, extra))


def write_expect(folder, kinds):
    (folder / "expect.json").write_text(json.dumps({"verdict": "mistake" if kinds else "ok", "kinds": kinds}) + "\n")


def write_log(folder, prefix, form, options):
    records, total = train(**options)
    if form == "trainer_state.json":
        text = as_state(records, total, options.get("epochs", 3), options.get("micro", 4))
    else:
        text = WRITERS[form](records, total)
    (folder / (prefix + form)).write_text(text)


def pair(group, name, kinds, form, first, second, names=("accum1_", "accum8_")):
    folder = HERE / group / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_expect(folder, kinds)
    write_log(folder, names[0], form, first)
    write_log(folder, names[1], form, second)


def development():
    g = "logs"
    case(g, "right_state", [], "trainer_state.json", dict(seed=1, evals=True))
    case(g, "right_printed_cosine", [], "printed.log", dict(seed=2, schedule="cosine", warmup=0.1, every=5, epochs=4))
    case(g, "right_lines_lm", [], "log.jsonl", dict(seed=3, vocabulary=1200, epochs=2, lr=5e-3), {"vocab_size": 1200})
    case(g, "right_text_alone", [], "train.log", dict(seed=4, classes=6), with_arguments=False)
    case(g, "right_csv", [], "log.csv", dict(seed=5, classes=2, accum=4, schedule="cosine"), {"num_labels": 2})
    case(g, "right_constant", [], "printed.log", dict(seed=6, schedule="constant", warmup=0.05), {"lr_scheduler_type": "constant_with_warmup"})
    case(g, "right_drop_tail", [], "trainer_state.json", dict(seed=7, examples=700, mistake="drop"))
    case(g, "right_tail_note", [], "log.jsonl", dict(seed=8, examples=700, mistake="tail_full"))
    case(g, "right_world", [], "train.log", dict(seed=9, world=4, micro=4, accum=2, examples=1600, schedule="cosine"))
    case(g, "times_classes", ["loss_times_accum"], "printed.log", dict(seed=11, mistake="times"), {"num_labels": 4})
    case(g, "times_eval", ["loss_times_accum", "log_factor"], "trainer_state.json", dict(seed=12, mistake="times", evals=True))
    case(g, "times_vocabulary", ["loss_times_accum"], "log.jsonl", dict(seed=13, vocabulary=1500, mistake="times", accum=4), {"vocab_size": 1500})
    case(g, "divided_classes", ["log_divided_twice"], "train.log", dict(seed=14, classes=5, mistake="log_small"), {"num_labels": 5})
    case(g, "divided_eval", ["log_divided_twice", "log_factor"], "trainer_state.json", dict(seed=15, classes=8, mistake="log_small", evals=True, accum=4))
    case(g, "world_factor", ["loss_constant_factor"], "log.jsonl", dict(seed=16, world=4, accum=1, examples=1600, mistake="world"), {"num_labels": 4})
    case(g, "half_classes", ["loss_constant_factor"], "printed.log", dict(seed=17, vocabulary=2000, accum=1, mistake="half", examples=320), {"vocab_size": 2000, "from_scratch": True})
    case(g, "sched_fast_linear", ["sched_per_micro_step"], "trainer_state.json", dict(seed=18, mistake="sched_fast", accum=4))
    case(g, "sched_fast_cosine", ["sched_per_micro_step"], "printed.log", dict(seed=19, mistake="sched_fast", accum=8, schedule="cosine", warmup=0.1, epochs=5))
    case(g, "sched_slow", ["sched_units"], "log.jsonl", dict(seed=20, mistake="sched_slow", accum=4, schedule="cosine"))
    case(g, "sched_slow_alone", ["sched_units"], "trainer_state.json", dict(seed=21, mistake="sched_slow", accum=8), None)
    case(g, "sched_world", ["sched_world_size"], "train.log", dict(seed=22, mistake="sched_world", world=4, accum=2, examples=1600))
    case(g, "sched_world_slow", ["steps_world_size", "sched_world_size"], "log.csv", dict(seed=23, mistake="sched_world_slow", world=8, accum=2, examples=3200, schedule="linear"))
    case(g, "warm_long", ["sched_units"], "printed.log", dict(seed=24, mistake="warm_long", warmup=0.05, accum=8, schedule="constant"), {"lr_scheduler_type": "constant_with_warmup"})
    case(g, "warm_never", ["warmup_gt_total"], "trainer_state.json", dict(seed=25, mistake="warm_never"), {"warmup_steps": 180})
    case(g, "leak", ["tail_leak"], "log.jsonl", dict(seed=26, examples=1760, micro=16, accum=4, mistake="tail_leak", epochs=5, lr=2e-4))
    case(g, "cross", ["window_crosses_epoch"], "trainer_state.json", dict(seed=27, examples=700, mistake="cross", epochs=5))
    case(g, "cross_alone", ["window_crosses_epoch"], "train.log", dict(seed=28, examples=500, mistake="cross", epochs=6), with_arguments=False)
    case(g, "no_zero", ["missing_zero_grad"], "log.jsonl", dict(seed=29, mistake="no_zero", lr=1e-4))
    case(g, "scaled", ["clip_before_unscale"], "printed.log", dict(seed=30, mistake="scaled"), {"fp16": True})
    pair(g, "pair_right", [], "printed.log", dict(seed=31, micro=32, accum=1), dict(seed=31, micro=4, accum=8))
    pair(g, "pair_times", ["loss_times_accum"], "printed.log", dict(seed=32, micro=32, accum=1), dict(seed=32, micro=4, accum=8, mistake="times"))
    pair(g, "pair_no_division", ["no_division"], "log.jsonl", dict(seed=33, micro=32, accum=1), dict(seed=33, micro=4, accum=8, mistake="no_division"))
    pair(g, "pair_double", ["double_division"], "trainer_state.json", dict(seed=34, micro=32, accum=1), dict(seed=34, micro=4, accum=8, mistake="double"))
    pair(g, "pair_log_small", ["log_divided_twice"], "train.log", dict(seed=35, micro=32, accum=1), dict(seed=35, micro=4, accum=8, mistake="log_small"))
    pair(g, "pair_log_times", ["log_factor", "loss_times_accum"], "log.csv", dict(seed=36, micro=32, accum=1), dict(seed=36, micro=4, accum=8, mistake="log_times"))


def held_out():
    g = "logs_held_out"
    case(g, "h01", [], "trainer_state.json", dict(seed=101, classes=3, accum=4, every=5, epochs=6, schedule="cosine", warmup=0.06, evals=True), {"num_labels": 3})
    case(g, "h02", [], "log.csv", dict(seed=102, vocabulary=800, accum=16, micro=2, every=2, lr=1e-2), {"vocab_size": 800})
    case(g, "h03", [], "printed.log", dict(seed=103, classes=2, accum=2, micro=8, every=10, epochs=8, lr=5e-4), with_arguments=False)
    case(g, "h04", [], "train.log", dict(seed=104, classes=10, accum=4, lr=1e-2, epochs=2), {"num_classes": 10})
    case(g, "h05", [], "log.jsonl", dict(seed=105, examples=610, accum=8, epochs=5, evals=True), with_arguments=False)
    case(g, "h06", [], "trainer_state.json", dict(seed=106, examples=1000, accum=8, world=2, epochs=4, schedule="constant"), {"lr_scheduler_type": "constant"})
    case(g, "h07", [], "printed.log", dict(seed=107, examples=900, accum=16, micro=2, mistake="tail_full", epochs=4))
    case(g, "h08", [], "train.log", dict(seed=108, vocabulary=3000, accum=4, micro=8, epochs=1, evals=True), {"vocab_size": 3000})
    pair(g, "h09", [], "trainer_state.json", dict(seed=109, micro=16, accum=1, classes=3), dict(seed=109, micro=4, accum=4, classes=3), ("ga1_", "ga4_"))
    pair(g, "h10", [], "log.jsonl", dict(seed=110, micro=8, accum=4, vocabulary=900), dict(seed=110, micro=2, accum=16, vocabulary=900), ("8x4_", "2x16_"))
    case(g, "h11", ["loss_times_accum"], "log.csv", dict(seed=111, vocabulary=600, accum=16, micro=2, every=4, mistake="times"), {"vocab_size": 600})
    case(g, "h12", ["loss_times_accum"], "train.log", dict(seed=112, classes=12, accum=2, mistake="times", evals=True))
    case(g, "h13", ["log_divided_twice"], "printed.log", dict(seed=113, classes=10, accum=16, micro=2, mistake="log_small"), {"num_labels": 10})
    case(g, "h14", ["sched_per_micro_step"], "log.jsonl", dict(seed=114, accum=16, micro=2, mistake="sched_fast", epochs=6))
    case(g, "h15", ["sched_units"], "printed.log", dict(seed=115, accum=2, micro=8, mistake="sched_slow", every=2))
    case(g, "h16", ["sched_world_size"], "trainer_state.json", dict(seed=116, world=2, accum=4, mistake="sched_world", schedule="cosine", examples=1200))
    case(g, "h17", ["warmup_gt_total"], "printed.log", dict(seed=117, mistake="warm_never", schedule="cosine", every=3), {"warmup_steps": 500})
    case(g, "h18", ["window_crosses_epoch"], "log.jsonl", dict(seed=118, examples=450, accum=16, micro=2, mistake="cross", epochs=7))
    case(g, "h19", ["tail_leak"], "trainer_state.json", dict(seed=119, examples=1200, accum=8, micro=8, mistake="tail_leak", epochs=6, lr=3e-4))
    case(g, "h20", ["missing_zero_grad"], "trainer_state.json", dict(seed=120, mistake="no_zero", lr=5e-5, epochs=4))
    case(g, "h21", ["clip_before_unscale"], "log.csv", dict(seed=121, mistake="scaled", vocabulary=700), {"fp16": True})
    case(g, "h22", ["loss_constant_factor"], "train.log", dict(seed=122, world=8, accum=1, examples=3200, mistake="world"), {"num_labels": 4})
    pair(g, "h23", ["loss_times_accum"], "log.csv", dict(seed=123, micro=16, accum=1, vocabulary=500), dict(seed=123, micro=2, accum=8, vocabulary=500, mistake="times"), ("baseline_ga1_", "run_ga8_"))
    pair(g, "h24", ["no_division"], "train.log", dict(seed=124, micro=8, accum=2, classes=6), dict(seed=124, micro=2, accum=8, classes=6, mistake="no_division"), ("acc2_", "acc8_"))
    pair(g, "h25", ["log_divided_twice"], "printed.log", dict(seed=125, micro=32, accum=1, classes=6), dict(seed=125, micro=8, accum=4, classes=6, mistake="log_small"), ("reference_", "accum4_"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    development()
    held_out()
