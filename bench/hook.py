"""What the hook costs a training script, beside TraceML's on the same script in the same run.

    scripts/bench hook [--rounds 4] [--blocks 60] [--json FILE]

A plain loop, in processes of its own, alternates between blocks of 100 steps that are observed and blocks that are not:
off, on, on, off. Observed means by the hook, or within trace_step of traceml-ai 0.5; not observed means with torch's own
functions put back and a model of another class for the hook, and without trace_step for TraceML, which favours TraceML by
what its patches cost outside. The added time of a step is the difference of neighbouring blocks, in three ways: of the
medians of the step times; of their means without the slowest 2 %; of the processor time of the whole block, which holds
what is not done in every step (the hook tells its steps a few times a second) and what runs on other threads. Each is the
median over the pairs of blocks of a process; the interval is over processes.
Wanted, by means and by processor time: at most 1/20 of what TraceML adds, and below 0.5 % of a micro-step of 10 ms. Exit 1
when not.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading

import side_environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOOK = ROOT / "python" / "batchwright" / "hook"
RECORDER = ROOT / "build" / "release" / "lib" / "batchwright" / "batchwright_recorder.abi3.so"
FIGURES = ["median step", "mean step, slowest 2 % left out", "processor time of a step"]

LOOP = """
import statistics, sys, time
import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks
side, blocks = sys.argv[1], int(sys.argv[2])
STEPS = 100
torch.set_num_threads(1)
torch.manual_seed(0)
if side == "traceml":
    import traceml_ai as traceml
    traceml.init(mode="auto")


class Other(torch.nn.Sequential):
    pass


def made_of(kind):
    model = kind(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


inputs, labels = torch.randn(8, 32), torch.randint(0, 2, (8,))
observed = made_of(torch.nn.Sequential)
other = made_of(Other) if side == "hook" else observed


def step(model, optimizer):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()


def traced(model, optimizer):
    with traceml.trace_step(model):
        step(model, optimizer)


def switch(on):
    if side != "hook":
        return
    torch.autograd.backward = hooked if on else hooked.__wrapped__
    for hooks, saved in zip(global_hooks, saved_hooks):
        hooks.update(saved) if on else hooks.clear()


def block(on):
    switch(on)
    run, subject = (traced if on and side == "traceml" else step), (observed if on else other)
    times, spent = [], time.process_time_ns()
    for _ in range(STEPS):
        begin = time.perf_counter_ns()
        run(*subject)
        times.append(time.perf_counter_ns() - begin)
    spent = time.process_time_ns() - spent
    times.sort()
    most = int(0.98 * STEPS)
    return times[STEPS // 2], sum(times[:most]) / most, spent / STEPS


hooked = torch.autograd.backward
global_hooks = [_global_optimizer_pre_hooks, _global_optimizer_post_hooks]
saved_hooks = [dict(hooks) for hooks in global_hooks]
for on in (True, False) * 3:
    block(on)
added, bare = [], []
for number in range(blocks):
    one = block(number % 2 == 1)
    two = block(number % 2 == 0)
    on, off = (one, two) if number % 2 == 1 else (two, one)
    added.append([a - b for a, b in zip(on, off)])
    bare.append(off)
print("BARE", *map(statistics.median, zip(*bare)))
print("ADDED", *map(statistics.median, zip(*added)))
"""


class Sink:
    """Reads what the hook says, as the tuner does, and throws it away."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "socket")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.server.accept()
            threading.Thread(target=self.drain, args=(connection,), daemon=True).start()

    @staticmethod
    def drain(connection):
        while connection.recv(1 << 16):
            pass


def run(side, blocks, sink, traceml_python):
    """Microseconds added to a step, and those of a step that is not observed, by the three figures."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if side == "hook":
        environment.update(PYTHONPATH=str(HOOK), BATCHWRIGHT_SOCKET=sink.path)
        if RECORDER.exists():
            environment.update(BATCHWRIGHT_RECORDER=str(RECORDER))
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "loop.py"
        script.write_text(LOOP)
        # Without its launcher TraceML finds no aggregator and does nothing.
        start = ([traceml_python.parent / "traceml", "run", "--logs-dir", folder, "--run-name", "run", script, "--args"]
                 if side == "traceml" else [sys.executable, script])
        output = subprocess.run([*start, side, str(blocks)], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    lines = {line.split()[0]: [float(value) / 1e3 for value in line.split()[1:]]
             for line in output.stdout.splitlines() if line.startswith(("BARE ", "ADDED "))}
    if lines.keys() != {"BARE", "ADDED"}:
        sys.exit(f"the {side} loop failed:\n{output.stdout[-1000:]}{output.stderr[-2000:]}")
    return lines["ADDED"], lines["BARE"]


def interval(values):
    middle = statistics.mean(values)
    if len(values) < 2:
        return middle, middle, middle
    half = 2.0 * statistics.stdev(values) / len(values) ** 0.5
    return middle, middle - half, middle + half


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="not used")
    parser.add_argument("--data", help="not used")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    traceml = side_environment.python_with("traceml-0.5", "traceml-ai==0.5.*")
    seen = {"hook": [], "traceml": []}
    with tempfile.TemporaryDirectory() as folder:
        sink = Sink(folder)
        for number in range(options.rounds):
            for side in list(seen) if number % 2 == 0 else list(seen)[::-1]:
                added, bare = run(side, options.blocks, sink, traceml)
                seen[side].append(added)
                print(f"  {side}: " + ", ".join(f"{a:+.2f} on {b:.1f} us" for a, b in zip(added, bare)), file=sys.stderr)
    result = {name: {side: interval([added[i] for added in values]) for side, values in seen.items()}
              for i, name in enumerate(FIGURES)}
    for name, sides in result.items():
        ours, theirs = sides["hook"], sides["traceml"]
        print(f"added to the {name}: hook {ours[0]:.2f} us [{ours[1]:.2f}, {ours[2]:.2f}], TraceML {theirs[0]:.1f} us "
              f"[{theirs[1]:.1f}, {theirs[2]:.1f}], ratio {theirs[0] / ours[0]:.0f}; of a 10 ms micro-step "
              f"{ours[0] / 1e4:.3%}")
    if options.json:
        options.json.write_text(json.dumps(result))
    judged = [(sides["hook"][0], sides["traceml"][0]) for name, sides in result.items() if name != FIGURES[0]]
    sys.exit(0 if all(theirs >= 20 * ours and ours < 50 for ours, theirs in judged) else 1)


if __name__ == "__main__":
    main()
