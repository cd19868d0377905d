"""Our engine beside the Transformers Trainer with PEFT: ratios of step time on the same examples, in one run.

    scripts/bench engine [--cases NAME,...] [--steps 10] [--data FILE.jsonl] [--json FILE]

Cases (effective batch 32, MiniLM, dropout as in the model's config on both sides, the Trainer's defaults):
  lora-32x1, lora-8x4, lora-1x32, full-32x1     natural lengths, the same split on both sides
  lora-uniform-64, lora-uniform-128             every example of that length, 32x1
  lora-best                                     each side at its best split; the peer's also of batching and wait policy
  tax                                           slowest exact split / fastest - 1, of both
Each comparison runs ours, peer, peer, ours; the interval is 95 % by bootstrap over the windows.
"""
import argparse
import json
import pathlib
import statistics
import sys

import gemm_peak
import side_by_side as sbs
import tokens
from side_by_side import Run

SPLITS = ("32x1", "16x2", "8x4", "4x8", "2x16", "1x32")
# name: (data, ours, peer, the ratio that issue "fastest exact step" asks for)
FIXED = {
    "lora-32x1": ("natural", Run("32x1"), Run("32x1"), 3.3),
    "lora-8x4": ("natural", Run("8x4"), Run("8x4"), 3.3),
    "lora-1x32": ("natural", Run("1x32"), Run("1x32"), 3.5),
    "full-32x1": ("natural", Run("32x1", "full"), Run("32x1", "full"), 2.2),
    "lora-uniform-64": ("64", Run("32x1"), Run("32x1"), 1.6),
    "lora-uniform-128": ("128", Run("32x1"), Run("32x1"), None),
}
ALL = [*FIXED, "lora-best", "tax"]


def log(text):
    print(text, file=sys.stderr, flush=True)


def row(name, comparison, wanted, ours, peer):
    ratio, low, high = comparison.ratio()
    return {"case": name, "ours": vars(ours), "peer": vars(peer), "ours_step_seconds": statistics.mean(comparison.ours),
            "peer_step_seconds": statistics.mean(comparison.peer), "ratio": ratio, "low": low, "high": high,
            "wanted": wanted, "memory_ratio": comparison.memory_ratio(),
            "ours_peak_bytes": max(run.peak_bytes for run in comparison.ours_runs),
            "peer_peak_bytes": max(run.peak_bytes for run in comparison.peer_runs)}


def print_row(result):
    wanted = f"wanted {result['wanted']}x" if result["wanted"] else ""
    print(f"{result['case']:18} ours {sbs.seconds(result['ours_step_seconds']):>7}  peer "
          f"{sbs.seconds(result['peer_step_seconds']):>7}  ratio {result['ratio']:.2f} [{result['low']:.2f}, "
          f"{result['high']:.2f}] {wanted:13}  memory {result['memory_ratio']:.2f}x "
          f"({result['ours_peak_bytes'] >> 20} of {result['peer_peak_bytes'] >> 20} MiB)", flush=True)


def mean_time(result):
    return statistics.mean(result.step_seconds)


def best_runs(data, steps):
    """Each side's fastest configuration by one short run of each; the comparison itself comes after."""
    ours = {Run(split): sbs.run_ours(data, Run(split), steps) for split in SPLITS}
    log("  ours:  " + ", ".join(f"{run.split} {sbs.seconds(mean_time(r))}" for run, r in ours.items()))
    peers = {}
    for batching in ("longest", "group"):
        for wait_policy in ("unset", "passive"):
            for split in ("32x1", "16x2", "8x4"):
                run = Run(split, batching=batching, wait_policy=wait_policy)
                peers[run] = sbs.run_peer(data, run, steps)
                log(f"  peer:  {split} {batching} {wait_policy} {sbs.seconds(mean_time(peers[run]))}")
    return min(ours, key=lambda run: mean_time(ours[run])), min(peers, key=lambda run: mean_time(peers[run]))


def tax(data, steps):
    ours = [mean_time(sbs.run_ours(data, Run(split), steps)) for split in SPLITS]
    peer = [mean_time(sbs.run_peer(data, Run(split), steps)) for split in SPLITS]
    for split, a, b in zip(SPLITS, ours, peer):
        log(f"  {split:>5}  ours {sbs.seconds(a)}  peer {sbs.seconds(b)}")
    return {"case": "tax", "ours": max(ours) / min(ours) - 1, "peer": max(peer) / min(peer) - 1,
            "splits": list(SPLITS), "ours_step_seconds": ours, "peer_step_seconds": peer}


def print_share_of_peak(data, steps, result):
    config = json.loads((data.model / "config.json").read_text())
    real = data.real_tokens_per_step(steps)
    peak, rates = gemm_peak.measure(round(real), config["hidden_size"], config["intermediate_size"])
    flops = gemm_peak.lora_step_flops(real, config, rank=16)
    print(f"{'share of peak':18} ours {flops / result['ours_step_seconds'] / peak:.2f}  peer "
          f"{flops / result['peer_step_seconds'] / peak:.2f}  (peak {peak / 1e9:.0f} GFLOP/s, {real:.0f} real tokens and "
          f"{flops / 1e9:.0f} GFLOP a step)", flush=True)
    log("  " + ", ".join(f"{shape} {rate / 1e9:.0f}" for shape, rate in rates.items()))


def run_case(name, data_of, options):
    if name in FIXED:
        kind, ours, peer, wanted = FIXED[name]
        result = row(name, sbs.compare(data_of(kind), ours, peer, options.steps), wanted, ours, peer)
        print_row(result)
        if name == "lora-32x1":
            print_share_of_peak(data_of(kind), options.steps, result)
        return result
    if name == "lora-best":
        ours, peer = best_runs(data_of("natural"), max(4, options.steps // 2))
        result = row(name, sbs.compare(data_of("natural"), ours, peer, options.steps), 2.1, ours, peer)
        print_row(result)
        print(f"{'':18} ours {ours.split}; peer {peer.split}, {peer.batching}, wait policy {peer.wait_policy}")
        return result
    result = tax(data_of("natural"), max(4, options.steps // 2))
    print(f"{'tax':18} ours {100 * result['ours']:.1f} %  peer {100 * result['peer']:.1f} %", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--cases", default=",".join(ALL))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--json", type=pathlib.Path, help="also write every figure there")
    options = parser.parse_args()
    cases = options.cases.split(",")
    if unknown := sorted(set(cases) - set(ALL)):
        parser.error(f"unknown case {unknown[0]}; there are {', '.join(ALL)}")
    steps = options.steps + sbs.WARM_UP_STEPS
    options.steps = steps
    natural = tokens.natural(options.data, options.model, 128, sbs.ROOT / "build" / "bench")

    def data_of(kind):
        path = natural if kind == "natural" else tokens.uniform(natural, int(kind))
        return sbs.Data(options.model, path)

    results = []
    for name in cases:
        log(f"{name} ...")
        results.append(run_case(name, data_of, options))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
