"""What the hook costs a training script, beside TraceML's on the same script in the same run.

    scripts/bench hook [--rounds 6] [--steps 6000] [--json FILE]

A plain loop runs bare, under the hook and under traceml-ai 0.5's trace_step, in turns (A B C C B A ...), each in a process
of its own. The added time of a step is the difference of the step times: of their medians, of their means without the
slowest 2 %, and of the processor time of the whole loop by its steps. The last one also holds what is not done in every
step (the hook tells its steps a few times a second) and what runs on other threads. The interval is over rounds.
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
FIGURES = {"MEDIAN": "median step", "MEAN": "mean step, slowest 2 % left out", "PROCESSOR": "processor time of a step"}

LOOP = """
import sys, time, contextlib
import torch
side, steps = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(0)
trace = contextlib.nullcontext
if side == "traceml":
    import traceml_ai as traceml
    traceml.init(mode="auto")
    trace = traceml.trace_step
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(8, 32), torch.randint(0, 2, (8,))
times = []
for step in range(steps + 100):
    if step == 100:
        spent = time.process_time_ns()
    begin = time.perf_counter_ns()
    with trace(model) if side == "traceml" else trace():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    times.append(time.perf_counter_ns() - begin)
print("PROCESSOR", (time.process_time_ns() - spent) / steps)
times = sorted(times[100:])
print("MEDIAN", times[len(times) // 2])
print("MEAN", sum(times[: int(0.98 * len(times))]) / int(0.98 * len(times)))
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


def run(side, steps, sink, traceml_python):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if side == "hook":
        environment.update(PYTHONPATH=str(HOOK), BATCHWRIGHT_SOCKET=sink.path)
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "loop.py"
        script.write_text(LOOP)
        # Without its launcher TraceML finds no aggregator and does nothing.
        start = ([traceml_python.parent / "traceml", "run", "--logs-dir", folder, "--run-name", "run", script, "--args"]
                 if side == "traceml" else [sys.executable, script])
        output = subprocess.run([*start, side, str(steps)], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    figures = dict(line.split() for line in output.stdout.splitlines() if line.startswith(tuple(FIGURES)))
    if figures.keys() != FIGURES.keys():
        sys.exit(f"the {side} loop failed:\n{output.stdout[-1000:]}{output.stderr[-2000:]}")
    return {key: float(value) / 1e3 for key, value in figures.items()}  # microseconds


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
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    traceml = side_environment.python_with("traceml-0.5", "traceml-ai==0.5.*")
    added = {key: {"hook": [], "traceml": []} for key in FIGURES}
    with tempfile.TemporaryDirectory() as folder:
        sink = Sink(folder)
        for number in range(options.rounds):
            order = ["bare", "hook", "traceml"]
            seen = {side: run(side, options.steps, sink, traceml) for side in (order if number % 2 == 0 else order[::-1])}
            for key, sides in added.items():
                for side in sides:
                    sides[side].append(seen[side][key] - seen["bare"][key])
            print("  " + ", ".join(f"{side} {seen[side]['MEDIAN']:.1f} us" for side in order), file=sys.stderr)
    result = {key: {side: interval(values) for side, values in sides.items()} for key, sides in added.items()}
    for key, name in FIGURES.items():
        ours, theirs = result[key]["hook"], result[key]["traceml"]
        print(f"added to the {name}: hook {ours[0]:.1f} us [{ours[1]:.1f}, {ours[2]:.1f}], TraceML {theirs[0]:.1f} us "
              f"[{theirs[1]:.1f}, {theirs[2]:.1f}], ratio {theirs[0] / ours[0]:.1f}; of a 10 ms micro-step "
              f"{ours[0] / 1e4:.3%}")
    if options.json:
        options.json.write_text(json.dumps(result))
    judged = [(result[key]["hook"][0], result[key]["traceml"][0]) for key in ("MEAN", "PROCESSOR")]
    sys.exit(0 if all(theirs >= 20 * ours and ours < 50 for ours, theirs in judged) else 1)


if __name__ == "__main__":
    main()
