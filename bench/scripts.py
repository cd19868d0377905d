"""Tuning a user's script by restarts: does the search choose well, and cheaply?

    scripts/bench scripts [--starts 3] [--steps 20] [--limit 900MiB] [--json FILE]

The script is examples/transformers_trainer.py with LoRA on MiniLM at an effective batch of 32. Exhaustive: every exact
split, --starts starts of --steps timed steps each, start-up included. Wanted: the recommended split's mean step is within 2 % of
the best's plus its 95 % interval, at no more than 25 % of the sweep's time; with --limit, which must fail the two largest
splits, at most two trials run out of memory. Exit 1 when not.
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
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "release" / "bin" / "batchwright"
EFFECTIVE_BATCH = 32
SPLITS = [(micro, EFFECTIVE_BATCH // micro) for micro in (32, 16, 8, 4, 2, 1)]


def script(model, micro, accum, output):
    return [sys.executable, str(ROOT / "examples" / "transformers_trainer.py"), str(model), "--lora", "16",
            "--per_device_train_batch_size", str(micro), "--gradient_accumulation_steps", str(accum), "--output_dir", output]


def one_start(model, split, steps):
    """Step times of one start, from the same hook."""
    with tempfile.TemporaryDirectory() as folder:
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"{folder}/socket")
        server.listen(8)
        environment = dict(os.environ, BATCHWRIGHT_SOCKET=f"{folder}/socket", BATCHWRIGHT_STEPS=str(steps + 2),
                           PYTHONPATH=str(ROOT / "python" / "batchwright" / "hook"), HF_HUB_OFFLINE="1")
        child = subprocess.Popen(script(model, *split, f"{folder}/out"), env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connection, _ = server.accept()
        data = b""
        while chunk := connection.recv(1 << 16):
            data += chunk
        child.wait()
    messages = [json.loads(line) for line in data.splitlines()]
    return [message["seconds"] for message in messages if message["type"] == "step"][2:]


def sweep(model, starts, steps):
    begin = time.monotonic()
    means = {}
    for start in range(starts):
        for split in SPLITS if start % 2 == 0 else SPLITS[::-1]:
            means.setdefault(split, []).append(statistics.mean(one_start(model, split, steps)))
            print(f"  start {start + 1}: {split[0]}x{split[1]} {means[split][-1]:.3f} s a step", file=sys.stderr)
    return means, time.monotonic() - begin


def tune(model, *more):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        command = [PROGRAM, "tune", "--effective-batch", str(EFFECTIVE_BATCH), "--no-cache", "--quiet", "--json", "--run",
                   f"{folder}/run", *more, "--", *script(model, "{micro}", "{accum}", "{scratch}")]
        output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if not output.stdout:
            sys.exit(f"tune failed:\n{output.stderr[-2000:]}")
        return json.loads(output.stdout), time.monotonic() - begin


def judge(means, sweep_seconds, result, seconds):
    best = min(means, key=lambda split: statistics.mean(means[split]))
    values = means[best]
    half = 4.303 * statistics.stdev(values) / len(values) ** 0.5 if len(values) == 3 else 0.0  # t, two degrees of freedom
    trial = result["trials"][result["recommended"]]
    chosen = (trial["micro_batch"], trial["accumulation_steps"])
    above = statistics.mean(means[chosen]) / statistics.mean(values) - 1
    interval = half / statistics.mean(values)
    share = seconds / sweep_seconds
    print(f"best {best[0]}x{best[1]}, recommended {chosen[0]}x{chosen[1]}: {above:+.1%} (interval of the best {interval:.1%}), "
          f"{seconds:.0f} s against {sweep_seconds:.0f} s: {share:.0%}")
    return above <= 0.02 + interval and share <= 0.25


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", help="not used: the example has its own rows")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--limit", help="a memory limit that fails the two largest splits")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    means, sweep_seconds = sweep(options.model, options.starts, options.steps)
    result, seconds = tune(options.model)
    good = judge(means, sweep_seconds, result, seconds)
    if options.limit:
        limited, _ = tune(options.model, "--memory-limit", options.limit)
        failed = [trial for trial in limited["trials"] if trial["outcome"] == "out_of_memory"]
        print(f"under {options.limit}: {len(failed)} trials ran out of memory, recommended "
              f"{limited['trials'][limited['recommended']]['micro_batch'] if limited['recommended'] is not None else None}")
        good = good and len(failed) <= 2
    if options.json:
        options.json.write_text(json.dumps({"sweep": {f"{m}x{a}": values for (m, a), values in means.items()},
                                            "sweep_seconds": sweep_seconds, "tune": result, "tune_seconds": seconds}))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
