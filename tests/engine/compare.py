"""Compares what the engine dumped with what reference.py wrote; exit 1 when a bar is missed.

    compare.py ENGINE_DUMP REFERENCE [--loss 1e-5] [--gradient 1e-4] [--curve 1e-3] [--logits 1e-4]

Both are folders with gradients.safetensors, logits.safetensors and a JSON file (dump.json, reference.json) that has
"losses". The measure of a gradient: for each tensor, |difference| <= tolerance * max(|its gradient|, 1e-3 * |whole
gradient|), norms, because some gradients are exactly zero (BERT's key bias).
"""
import argparse
import json
import math
import pathlib
import sys

from safetensors.numpy import load_file


def norm(tensor):
    return math.sqrt(float((tensor.astype("float64") ** 2).sum()))


def gradient_differences(engine, reference):
    """[(relative difference, name)], the largest first. The same names must be on both sides."""
    only = sorted(set(engine) ^ set(reference))
    if only:
        sides = [f"{name} ({'engine' if name in engine else 'reference'} only)" for name in only[:10]]
        sys.exit(f"{len(only)} gradients on one side only: " + ", ".join(sides))
    whole = math.sqrt(sum(norm(tensor) ** 2 for tensor in reference.values()))
    differences = []
    for name, expected in reference.items():
        if engine[name].shape != expected.shape:
            sys.exit(f"{name}: shape {engine[name].shape}, expected {expected.shape}")
        scale = max(norm(expected), 1e-3 * whole)
        difference = norm(engine[name].astype("float64") - expected) / scale
        differences.append((difference if math.isfinite(difference) else math.inf, name))
    return sorted(differences, reverse=True)


def check(what, worst, tolerance, detail=""):
    passed = worst <= tolerance
    print(f"{'ok  ' if passed else 'FAIL'} {what}: {worst:.2e} (at most {tolerance:.0e}) {detail}".rstrip())
    return passed


def compare(options):
    engine = json.loads((options.engine / "dump.json").read_text())
    reference = json.loads((options.reference / "reference.json").read_text())
    passed = check("first loss", abs(engine["losses"][0] - reference["losses"][0]), options.loss,
                   f"{engine['losses'][0]:.6f} and {reference['losses'][0]:.6f}")
    differences = gradient_differences(load_file(options.engine / "gradients.safetensors"),
                                       load_file(options.reference / "gradients.safetensors"))
    passed &= check(f"gradients of {len(differences)} tensors", differences[0][0], options.gradient, differences[0][1])
    for difference, name in differences[1:4]:
        print(f"       {difference:.2e} {name}")
    logits = [load_file(folder / "logits.safetensors")["logits"] for folder in (options.engine, options.reference)]
    if logits[0].shape != logits[1].shape:
        sys.exit(f"logits have shape {logits[0].shape}, expected {logits[1].shape}")
    passed &= check("logits", float(abs(logits[0] - logits[1]).max()), options.logits)
    if len(engine["losses"]) != len(reference["losses"]):
        sys.exit(f"{len(engine['losses'])} losses, expected {len(reference['losses'])}")
    gaps = [abs(a - b) for a, b in zip(engine["losses"], reference["losses"])]
    passed &= check(f"losses of {len(gaps)} steps", max(gaps), options.curve, f"step {gaps.index(max(gaps)) + 1}")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=pathlib.Path)
    parser.add_argument("reference", type=pathlib.Path)
    for name, value in (("loss", 1e-5), ("gradient", 1e-4), ("curve", 1e-3), ("logits", 1e-4)):
        parser.add_argument(f"--{name}", type=float, default=value)
    sys.exit(0 if compare(parser.parse_args()) else 1)


if __name__ == "__main__":
    main()
