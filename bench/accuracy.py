"""Held-out accuracy after one epoch beside the Trainer's: same rows, same settings, mean over seeds.

    scripts/bench accuracy [--method lora|full] [--seeds 3] [--split 32x1] [--epochs 1] [--held-out 2000]
                            [--json FILE]

Each seed has its own hold-out of at least 2,000 rows, its own order and its own fresh head. Wanted: ours is not more than
one point below the Trainer's. Exit 1 when it is.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import sampler
import tokens

PROGRAM = tokens.ROOT / "build" / "release" / "bin" / "batchwright"
EFFECTIVE_BATCH, MOST_BELOW = 32, 0.01
LEARNING_RATES = {"lora": 5e-4, "full": 5e-5}


def ours(options, fraction, steps, seed):
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "train", options.model, options.data, "--effective-batch", EFFECTIVE_BATCH, "--split",
                   options.split, "--method", options.method, "--lora-rank", 16, "--learning-rate", options.learning_rate,
                   "--steps", steps, "--eval-fraction", fraction, "--seed", seed, "--quiet", "--json", "--run", folder]
        if options.method == "full":
            command = [word for i, word in enumerate(command) if word != "--lora-rank" and command[i - 1] != "--lora-rank"]
        output = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                text=True, check=True)
        return json.loads(output.stdout)["evaluation"]["accuracy"]


def peer(options, token_file, train, held_out, steps, seed):
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder, name + ".json") for name in ("windows", "held_out")}
        files["windows"].write_text(json.dumps(sampler.windows(train, EFFECTIVE_BATCH, seed, steps)))
        files["held_out"].write_text(json.dumps(held_out))
        command = [sys.executable, tokens.ROOT / "bench" / "peer_step.py", options.model, token_file, files["windows"],
                   "--split", options.split, "--method", options.method, "--learning-rate", options.learning_rate,
                   "--seed", seed, "--evaluate", files["held_out"]]
        output = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                text=True, check=True)
        return json.loads(output.stdout.splitlines()[-1])["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--method", choices=("lora", "full"), default="lora")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--split", default="32x1")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--held-out", type=int, default=2000, help="rows; more makes the accuracies surer and the epoch shorter")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.learning_rate = options.learning_rate or LEARNING_RATES[options.method]
    token_file = tokens.natural(options.data, options.model, 128, tokens.ROOT / "build" / "bench")
    rows = len(tokens.TokenFile(token_file))
    fraction = math.ceil(1000 * options.held_out / rows) / 1000
    results = []
    for seed in range(options.seeds):
        train, held_out = sampler.split_rows(rows, fraction, seed)
        # The Trainer drops no row, so the last window of an epoch may be short on both sides; whole windows only, here.
        steps = int(options.epochs * (len(train) // EFFECTIVE_BATCH))
        mine = ours(options, fraction, steps, seed)
        theirs = peer(options, token_file, train, held_out, steps, seed)
        results.append({"seed": seed, "held_out": len(held_out), "steps": steps, "ours": mine, "peer": theirs})
        print(f"seed {seed}: ours {100 * mine:.2f} %, Trainer {100 * theirs:.2f} % of {len(held_out)} rows, "
              f"{steps} steps", flush=True)
    means = [statistics.mean(result[side] for result in results) for side in ("ours", "peer")]
    good = means[0] >= means[1] - MOST_BELOW
    print(f"mean: ours {100 * means[0]:.2f} %, Trainer {100 * means[1]:.2f} % ({options.method}, {options.split}, learning "
          f"rate {options.learning_rate:g}): {'good' if good else 'NOT GOOD'}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
