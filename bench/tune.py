"""Does tune choose well, and cheaply? Its choice against an exhaustive sweep of the same splits on the same batches.

    scripts/bench tune [--repeat 1] [--json FILE] [-- options of `batchwright tune`]

The sweep times every exact split in 10 interleaved rounds of 5 steps. Wanted: the chosen split's time in the sweep is at
most 2 % above the best plus the sweep's own 95 % interval, and tune took at most 30 % of the sweep's time. Exit 1 when not.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "release" / "bin" / "batchwright"
TOLERANCE, MOST_OF_SWEEP = 0.02, 0.30
DEFAULTS = ["--effective-batch", "32", "--lora", "16", "--quiet"]


def tune(options, *more):
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "tune", options.model, options.data, *(options.tune_options or DEFAULTS), *more, "--json",
                   "--no-cache", "--run", folder]
        print("  " + " ".join(map(str, command[1:2] + command[4:])), file=sys.stderr, flush=True)
        output = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
        if output.returncode != 0:
            sys.exit(f"batchwright tune ended with code {output.returncode}")
        return json.loads(output.stdout)


def name(trial):
    return f"{trial['micro_batch']}x{trial['accumulation_steps']}"


def half_width(seconds):
    return (seconds["high"] - seconds["low"]) / 2


def judge(sweep, choice):
    if choice["recommended"] is None:
        sys.exit(f"tune recommends nothing: {choice['reason']}")
    times = {name(trial): trial["step_seconds"] for trial in sweep["trials"] if trial["outcome"] == "measured"}
    best = min(times, key=lambda split: times[split]["median"])
    chosen = name(choice["trials"][choice["recommended"]])
    above = times[chosen]["median"] / times[best]["median"] - 1
    interval = max(half_width(times[chosen]), half_width(times[best])) / times[best]["median"]
    share = choice["tuning_seconds"] / sweep["tuning_seconds"]
    return {"chosen": chosen, "best": best, "above_best": above, "interval": interval, "share_of_sweep": share,
            "tuning_seconds": choice["tuning_seconds"], "sweep_seconds": sweep["tuning_seconds"],
            "good": above <= TOLERANCE + interval and share <= MOST_OF_SWEEP,
            "sweep": {split: seconds["median"] for split, seconds in times.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeat", type=int, default=1, help="how often tune runs against the one sweep")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("tune_options", nargs="*")
    options = parser.parse_args()
    sweep = tune(options, "--exhaustive")
    verdicts = [judge(sweep, tune(options)) for _ in range(options.repeat)]
    for split, seconds in verdicts[0]["sweep"].items():
        print(f"{split:>6}  {1e3 * seconds:.1f} ms in the sweep")
    for verdict in verdicts:
        print(f"chose {verdict['chosen']} (best {verdict['best']}): {100 * verdict['above_best']:.1f} % above the best, "
              f"interval {100 * verdict['interval']:.1f} %; took {verdict['tuning_seconds']:.0f} s, "
              f"{100 * verdict['share_of_sweep']:.0f} % of the sweep's {verdict['sweep_seconds']:.0f} s: "
              f"{'good' if verdict['good'] else 'NOT GOOD'}")
    if options.json:
        options.json.write_text(json.dumps(verdicts, indent=1) + "\n")
    sys.exit(0 if all(verdict["good"] for verdict in verdicts) else 1)


if __name__ == "__main__":
    main()
