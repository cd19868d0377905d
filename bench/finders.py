"""Finding a batch size under a memory limit: tune beside Lightning's BatchSizeFinder and Accelerate's
find_executable_batch_size.

    scripts/bench finders [--effective-batch 32] [--limit BYTES] [--steps 20] [--rounds 2] [--json FILE]

MiniLM, full fine-tuning, AdamW, every example padded to 96 tokens. The limit is the address space of the process
(RLIMIT_AS), which each of the three sets itself after the same imports: what it refuses is a real allocation failure that
Python can catch, as on a GPU. Unless given it lies half way between what micro-batches of a quarter and of half the
effective batch take, so that the two largest splits fail. Printed for each: allocation failures, the micro-batch and
accumulation it leaves, the effective batch that makes, and the time of 32 examples so cut, every cut trained by the same
loop in turns. Wanted: tune runs out of memory less often, keeps the effective batch, and its step is not slower. Exit 1 when
not.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "release" / "bin" / "batchwright"
PEER = ROOT / "bench" / "peer_finders.py"


def run_peer(tool, options, *more, must=True):
    command = [sys.executable, PEER, tool, options.model, options.data, *map(str, more)]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            check=False)
    lines = [line for line in output.stdout.splitlines() if line.startswith("{")]
    if output.returncode == 0 and lines:
        return json.loads(lines[-1])
    if must:
        sys.exit(f"{tool} failed:\n{output.stderr[-2000:]}")
    print(f"  {tool} died:\n{output.stderr[-1500:]}", file=sys.stderr)
    return {"died": (output.stderr.strip().splitlines() or ["?"])[-1][:200], "out_of_memory": 1}


def train(options, micro, accum, limit=0, steps=None):
    return run_peer("script", options, "--micro", micro, "--accum", accum, "--steps", steps or options.steps, "--limit", limit,
                    must=limit == 0)


def limit_of(options):
    if options.limit:
        return options.limit
    quarter, half = (train(options, options.effective_batch // share, 1, steps=10)["peak_bytes"] for share in (4, 2))
    print(f"  address space at a quarter {quarter >> 20} MiB, at a half {half >> 20} MiB", file=sys.stderr)
    return (quarter + half) // 2


def with_tune(options, limit):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        command = [PROGRAM, "tune", "--effective-batch", str(options.effective_batch), "--memory-limit", str(limit),
                   "--no-cache", "--quiet", "--json", "--run", f"{folder}/run", "--", sys.executable, PEER, "script",
                   options.model, options.data, "--micro", "{micro}", "--accum", "{accum}", "--limit", str(limit)]
        output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if not output.stdout:
            sys.exit(f"tune failed:\n{output.stderr[-2000:]}")
        result, seconds = json.loads(output.stdout), time.monotonic() - begin
    chosen = result["trials"][result["recommended"]]
    return {"micro": chosen["micro_batch"], "accum": chosen["accumulation_steps"], "seconds": seconds,
            "trials": {f"{t['micro_batch']}x{t['accumulation_steps']}": t["why_dropped"] or t["outcome"] for t in result["trials"]},
            "out_of_memory": sum(trial["outcome"] == "out_of_memory" for trial in result["trials"])}


def time_cuts(options, found, limit):
    """Seconds for the effective batch's examples, as each tool cuts them."""
    cuts = sorted({(result["micro"], result["accum"]) for result in found.values() if "micro" in result})
    times = {cut: [] for cut in cuts}
    for number in range(options.rounds):
        for cut in cuts if number % 2 == 0 else cuts[::-1]:
            result = train(options, *cut, limit)
            print(f"  {cut[0]}x{cut[1]}: {result.get('step_seconds', result.get('died'))}", file=sys.stderr)
            if "step_seconds" in result:
                times[cut].append(result["step_seconds"] * options.effective_batch / (cut[0] * cut[1]))
    return {cut: statistics.mean(values) if values else None for cut, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--effective-batch", type=int, default=32)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    os.environ["MALLOC_ARENA_MAX"] = "2"  # an arena reserves 64 MiB of address space for each thread
    limit = limit_of(options)
    print(f"limit: {limit / 2**20:.0f} MiB of address space")
    asked = ("--effective-batch", options.effective_batch, "--limit", limit)
    found = {"batchwright tune": with_tune(options, limit),
             "Lightning BatchSizeFinder": run_peer("lightning", options, *asked, must=False),
             "Accelerate find_executable_batch_size": run_peer("accelerate", options, *asked, must=False)}
    print(f"  {found}", file=sys.stderr)
    times = time_cuts(options, found, limit)
    print("| tool | out of memory | leaves | effective batch | time of a step | search took |\n|---|---|---|---|---|---|")
    for name, result in found.items():
        if "micro" not in result:
            print(f"| {name} | {result['out_of_memory']} | died: {result['died']} | | | |")
            continue
        cut = result["micro"], result["accum"]
        result["step_seconds"] = times[cut]
        print(f"| {name} | {result['out_of_memory']} | {cut[0]}x{cut[1]} | {cut[0] * cut[1]} | "
              f"{'ran out of memory' if times[cut] is None else f'{times[cut]:.3f} s'} | {result['seconds']:.0f} s |")
    if options.json:
        options.json.write_text(json.dumps({"limit": limit, "found": found}))
    ours, *peers = found.values()
    good = ours["micro"] * ours["accum"] == options.effective_batch and ours["step_seconds"] is not None and all(
        ours["out_of_memory"] < peer["out_of_memory"] and
        (peer.get("step_seconds") is None or ours["step_seconds"] <= 1.02 * peer["step_seconds"]) for peer in peers)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
