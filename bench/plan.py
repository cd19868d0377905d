#!/usr/bin/env python3
"""Compare `batchwright plan --batch` with published measurements (request, peak, time, source).

usage: plan.py [--program FILE] [--rows FILE] [--worst N] [--only WORD] [--native MODEL]
The rows are bench/plan/rows.jsonl, which constants were fitted on, and tests/cases/plan/held_out.jsonl, which none was.
Prints errors by source and method: the median and the 90th percentile of |predicted / measured - 1|, how often
the interval holds the truth, how wide it is, what became of the runs that ran out of memory, and whether the
splits of one run are ordered as they were measured; and what intervals hold that were learnt without a source
(plan_widths.py). Then speed: from start to exit, and 10,000 different requests. --native compares the splits of this
machine's own engine with what plan says after `batchwright calibrate`: minutes, alone on the machine."""
import argparse
import collections
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

import plan_native
import plan_widths

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROWS = [os.path.join(ROOT, "bench", "plan", "rows.jsonl"), os.path.join(ROOT, "tests", "cases", "plan", "held_out.jsonl")]


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def predict(program, rows):
    lines = "".join(json.dumps(row["request"]) + "\n" for row in rows)
    done = subprocess.run([program, "plan", "--batch", "-"], input=lines, capture_output=True, text=True, cwd=ROOT)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(rows):
        sys.exit(f"{len(rows)} requests and {len(answers)} answers: {done.stderr}")
    return answers


def report(name, errors, inside, widths):
    print(f"  {name:52} n={len(errors):4}  median {100 * statistics.median(errors):5.1f} %  p90 {100 * quantile(errors, .9):5.1f} %"
          f"  inside {100 * statistics.mean(inside):5.1f} %  high/low {statistics.median(widths):.2f}")


def compare(rows, field, measured_of, worst):
    groups = collections.defaultdict(lambda: ([], [], []))
    ranked = []
    for row, split in rows:
        truth = measured_of(row)
        predicted = split[field]
        error = predicted["mid"] / truth - 1
        for key in ("all", row["source"], row["source"].split(":")[-1] + " " + row["request"]["method"]):
            errors, inside, widths = groups[key]
            errors.append(abs(error))
            inside.append(predicted["low"] <= truth <= predicted["high"])
            widths.append(predicted["high"] / predicted["low"])
        ranked.append((abs(error), error, row, split))
    for key in sorted(groups, key=lambda k: (k != "all", k)):
        report(key, *groups[key])
    for _, error, row, split in sorted(ranked, key=lambda r: -r[0])[:worst]:
        request = row["request"]
        print(f"    {100 * error:+6.1f} %  {row['id']} {row['variant']} {request['model']} {request['method']} {request['weights']} "
              f"m{request['micro_batch']} w{request['devices']} s{request.get('seq_len', 'varies')} measured {measured_of(row):.4g} "
              f"mid {split[field]['mid']:.4g} {split['peak_moment']}")


def order_of_splits(rows):
    runs = collections.defaultdict(list)
    for row, split in rows:
        request = dict(row["request"])
        micro = request.pop("micro_batch")
        key = (row["source"], row["variant"], json.dumps(request, sort_keys=True))
        runs[key].append((micro, row["step_seconds"], split["step_seconds"]["mid"]))
    right = total = 0
    for splits in runs.values():
        for a, b in itertools.combinations(splits, 2):
            if a[0] == b[0] or abs(a[1] / b[1] - 1) <= 0.03:
                continue
            total += 1
            right += (a[1] < b[1]) == (a[2] < b[2])
    return right, total


def speed(program):
    command = [program, "plan", "bert-base-uncased", "--effective-batch", "64", "--gpu", "T4", "--seq-len", "512", "--lora", "16"]
    times = []
    for _ in range(30):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    models = ["bert-base-uncased", "gpt2", "llama-3.1-8b", "qwen3-1.7b", "mistral-7b"]
    lines = "".join(json.dumps(dict(model=models[i % 5], method=("full", "lora")[i % 2], effective_batch=64, seq_len=32 + i // 4,
                                    gpu=("T4", "A100", "H100")[i % 3])) + "\n" for i in range(10000))
    start = time.perf_counter()
    done = subprocess.run([program, "plan", "--batch", "-"], input=lines, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    print(f"start to exit: median {1e3 * statistics.median(times):.1f} ms; {done.stdout.count(chr(10))} requests, "
          f"{lines.count(chr(10))} different: {seconds:.2f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "bin", "batchwright"))
    parser.add_argument("--model", help="accepted from scripts/bench, not used")
    parser.add_argument("--data", help="texts for --native")
    parser.add_argument("--rows", action="append")
    parser.add_argument("--native", metavar="MODEL", help="a folder with weights: compare with the engine's own splits")
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.native:
        return plan_native.compare(os.path.abspath(options.program), options.native, options.data)
    rows = [json.loads(line) for path in options.rows or ROWS for line in open(path)]
    rows = [row for row in rows if options.only in json.dumps(row)]
    answers = predict(os.path.abspath(options.program), rows)
    pairs = []
    for row, answer in zip(rows, answers):
        if "error" in answer:
            sys.exit(f"{row['id']}: {answer['error']}")
        pairs.append((row, answer["splits"][0]))
    known = [(row, split) for row, split in pairs if row.get("counter") in ("allocated", "reserved", "process") and "peak_gib" in row]
    print("memory, where the counter is known")
    compare(known, "peak_bytes", lambda row: row["peak_gib"] * 2**30, options.worst)
    unknown = [(row, split) for row, split in pairs if row.get("counter") == "unknown" and "peak_gib" in row]
    if unknown:
        print("memory, where the source does not say which counter (predicted: process)")
        compare(unknown, "peak_bytes", lambda row: row["peak_gib"] * 2**30, options.worst)
    print("memory, intervals learnt without the source")
    plan_widths.leave_one_source_out([(row, split, row["peak_gib"] * 2**30, split["peak_bytes"]["mid"])
                                      for row, split in known], plan_widths.memory_class)
    verdicts = collections.Counter((row["fits"], split["fits"]) for row, split in pairs if "fits" in row)
    count = sum(verdicts.values())
    if count:
        print("fits (measured, said):", {f"{a}/{b}": n for (a, b), n in sorted(verdicts.items())},
              f"unsure {100 * sum(n for (_, said), n in verdicts.items() if said == 'unsure') / count:.1f} %")
    timed = [(row, split) for row, split in pairs if "step_seconds" in row]
    print("time a step")
    compare(timed, "step_seconds", lambda row: row["step_seconds"], options.worst)
    print("time, intervals learnt without the source")
    plan_widths.leave_one_source_out([(row, split, row["step_seconds"], split["step_seconds"]["mid"])
                                      for row, split in timed], plan_widths.time_class)
    right, total = order_of_splits(timed)
    print(f"order of splits of one run, differing by more than 3 %: {right} of {total}")
    speed(os.path.abspath(options.program))


if __name__ == "__main__":
    main()
