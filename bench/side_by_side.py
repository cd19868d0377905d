"""Runs our engine and the peer on the same examples in one sitting, A B B A, and compares their step times."""
import dataclasses
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import tokens  # also puts tests/engine and python on the path
import sampler
from drive import Engine

ROOT = tokens.ROOT
ENGINE = pathlib.Path(os.environ.get("BATCHWRIGHT_ENGINE") or ROOT / "build" / "release" / "bin" / "batchwright-engine")
EFFECTIVE_BATCH = 32
WARM_UP_STEPS = 1


@dataclasses.dataclass(frozen=True)
class Run:
    """One side's configuration."""
    split: str = "32x1"
    method: str = "lora"
    layout: str = "auto"         # ours
    batching: str = "longest"    # the peer's
    wait_policy: str = "unset"   # OMP_WAIT_POLICY


@dataclasses.dataclass
class Result:
    step_seconds: list
    peak_bytes: int      # above the bare process
    losses: list
    details: dict


@dataclasses.dataclass
class Data:
    model: pathlib.Path
    tokens: pathlib.Path
    eval_fraction: float = 0.1
    seed: int = 0

    def windows(self, steps):
        train, _ = sampler.split_rows(len(self.file()), self.eval_fraction, self.seed)
        return sampler.windows(train, EFFECTIVE_BATCH, self.seed, steps)

    def file(self):
        return tokens.TokenFile(self.tokens)

    def real_tokens_per_step(self, steps):
        file = self.file()
        lengths = [int(file.offsets[row + 1] - file.offsets[row]) for w in self.windows(steps) for row in w]
        return sum(lengths) / steps


def environment(run):
    result = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    if run.wait_policy != "unset":
        result["OMP_WAIT_POLICY"] = run.wait_policy
    return result


def training_options(data, run, steps):
    return {"effective_batch": EFFECTIVE_BATCH, "method": run.method, "lora_rank": 16, "lora_alpha": 32,
            "lora_dropout": 0.05, "lora_targets": ["all-linear"], "steps": steps, "learning_rate": 5e-4,
            "seed": data.seed, "eval_fraction": data.eval_fraction, "threads": 0, "layout": run.layout,
            "max_length": data.file().header["max_length"]}


def bare_engine_bytes():
    """The highest resident size of an engine process that loads nothing. A child's figure starts at what its parent had
    when it forked, so a small process stands between."""
    program = ("import os, sys\n"
               "child = os.posix_spawn(sys.argv[1], [sys.argv[1], '--version'], os.environ)\n"
               "print(os.wait4(child, 0)[2].ru_maxrss * 1024)")
    output = subprocess.run([sys.executable, "-S", "-c", program, str(ENGINE)], capture_output=True, text=True, check=True)
    return int(output.stdout.split()[-1])


def highest_resident_bytes(process_id):
    for line in pathlib.Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc")


def run_ours(data, run, steps):
    """Steps over windows 0 .. steps - 1, the first WARM_UP_STEPS of them not counted."""
    micro, accumulation = (int(part) for part in run.split.split("x"))
    job = {"mode": "trials", "model_folder": str(data.model), "token_file": str(data.tokens),
           "options": training_options(data, run, steps)}
    with Engine(str(ENGINE), job, environment(run)) as engine:
        hello = engine.receive()
        reports, end = engine.trial(micro, accumulation, steps, first_step=0, batch="sampled", layout=run.layout)
        peak = highest_resident_bytes(engine.process.pid)
        engine.send(type="stop")
    if end is None or end["type"] != "done":
        raise RuntimeError(f"the engine's trial of {run.split} ended with {end}")
    return Result([report["seconds"] for report in reports[WARM_UP_STEPS:]], peak - bare_engine_bytes(),
                  [report["loss"] for report in reports], {"hello": hello, "phases": reports[-1]["phases"]})


def run_peer(data, run, steps):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(data.windows(steps), file)
        file.flush()
        command = [sys.executable, str(ROOT / "bench" / "peer_step.py"), str(data.model), str(data.tokens), file.name,
                   "--split", run.split, "--method", run.method, "--batching", run.batching]
        output = subprocess.run(command, env=environment(run), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if output.returncode != 0:
        raise RuntimeError(f"the peer failed: {output.stderr[-2000:]}")
    result = json.loads(output.stdout.splitlines()[-1])
    return Result(result["step_seconds"], result["peak_bytes_above_bare"], result["losses"], result)


@dataclasses.dataclass
class Comparison:
    ours: list           # step seconds, mean over the runs, one a window
    peer: list
    ours_runs: list      # Result
    peer_runs: list

    def ratio(self):
        """(mean peer step time / mean ours, low, high): 95 % by bootstrap over the windows, which both sides share."""
        rng = random.Random(0)
        draws = []
        for _ in range(2000):
            picks = [rng.randrange(len(self.ours)) for _ in self.ours]
            draws.append(sum(self.peer[i] for i in picks) / sum(self.ours[i] for i in picks))
        draws.sort()
        return sum(self.peer) / sum(self.ours), draws[50], draws[1949]

    def memory_ratio(self):
        return (statistics.mean(run.peak_bytes for run in self.ours_runs) /
                statistics.mean(run.peak_bytes for run in self.peer_runs))


def compare(data, ours, peer, steps):
    """Ours, peer, peer, ours: a drift of the machine falls on both alike."""
    first = run_ours(data, ours, steps)
    peers = [run_peer(data, peer, steps), run_peer(data, peer, steps)]
    our_runs = [first, run_ours(data, ours, steps)]

    def mean_steps(runs):
        return [statistics.mean(values) for values in zip(*(run.step_seconds for run in runs))]

    return Comparison(mean_steps(our_runs), mean_steps(peers), our_runs, peers)


def seconds(value):
    return f"{1e3 * value:.0f} ms" if value < 1 else f"{value:.2f} s"


