"""What training on two processes costs: their step beside that of two processes that know nothing of each other.

    scripts/bench devices [--steps 30] [--rounds 3] [--json FILE]

MiniLM at natural lengths, one thread a process, each process on a core of its own. "together": an effective batch of 32
over two ranks (8x2x2). "apart": two trainings at once with an effective batch of 16 each (8x2), which do the same work
but sum nothing over processes. Compared by seconds per token of a rank, the slower of the two apart; rounds in the order
together, apart, apart, together. The difference is what the collective adds: sums, and waiting for the other rank.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import tokens

sys.path.insert(0, str(tokens.ROOT / "tests" / "engine"))
import ranks  # noqa: E402

WANTED = {"lora": 0.10, "full": 0.20}
WARMUP = 3  # steps


def job(model, token_file, out, method, together, steps):
    return {"mode": "train", "model_folder": str(model), "token_file": str(token_file), "run_folder": str(out),
            "split": "8x2x2" if together else "8x2",
            "options": {"effective_batch": 32 if together else 16, "method": method, "steps": steps + WARMUP, "threads": 1,
                        "eval_fraction": 0.01, "seed": 0}}


def pinned(core):
    return lambda rank, command: ["taskset", "-c", str(core if core is not None else rank), *command]


def seconds_per_token(folder, share):
    steps = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()][WARMUP:]
    collective = statistics.mean(step["phases"]["collective"] / step["seconds"] for step in steps)
    return sum(step["seconds"] for step in steps) / (sum(step["tokens"] for step in steps) * share), collective


def run_together(engine, model, token_file, method, steps):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        ranks.run(engine, job(model, token_file, out, method, True, steps), 2, wrap=pinned(None))
        return seconds_per_token(out, 1 / 2)


def run_apart(engine, model, token_file, method, steps):
    with tempfile.TemporaryDirectory() as folder:
        outs = [pathlib.Path(folder, str(core)) for core in (0, 1)]
        groups = [ranks.Ranks(engine, job(model, token_file, out, method, False, steps), 1, wrap=pinned(core))
                  for core, out in enumerate(outs)]
        for group in groups:
            messages = group.until_done(600)
            assert messages[-1]["type"] == "done", messages[-1:]
        for group in groups:
            assert group.wait(30)
            group.__exit__()
        return max(seconds_per_token(out, 1)[0] for out in outs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--engine", default=str(tokens.ROOT / "build" / "release" / "bin" / "batchwright-engine"))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    token_file = tokens.natural(options.data, options.model, 128, tokens.ROOT / "build" / "data")
    rows = []
    for method, wanted in WANTED.items():
        arguments = (options.engine, options.model, token_file, method, options.steps)
        together, apart, shares = [], [], []
        for _ in range(options.rounds):
            for side in ("together", "apart", "apart", "together"):
                if side == "apart":
                    apart.append(run_apart(*arguments))
                else:
                    seconds, share = run_together(*arguments)
                    together.append(seconds)
                    shares.append(share)
        added = statistics.median(together) / statistics.median(apart) - 1
        rows.append({"method": method, "added": added, "wanted": wanted, "together_seconds_per_token": together,
                     "apart_seconds_per_token": apart, "collective_share": statistics.mean(shares)})
        print(f"{method:5} together {1e6 * statistics.median(together):.1f} us a token, apart "
              f"{1e6 * statistics.median(apart):.1f}: the collective adds {100 * added:+.1f} % (wanted below "
              f"{100 * wanted:.0f} %); phase collective {100 * statistics.mean(shares):.1f} % of a step", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
