"""`batchwright verify` on the release of Transformers whose Trainer does not divide the loss of a sequence classifier.

    scripts/bench verify

Runs examples/transformers_trainer.py on MiniLM under Transformers 5.24.0 (an environment of its own in build/venvs) and
under the release in .venv. Wanted: the first is found to be 4.0 times too large at 8x4 and named, the second equivalent.
Exit 1 when not.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import side_environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "release" / "bin" / "batchwright"


def verify(python, model, *more):
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "verify", "--effective-batch", "32", "--steps", "2", "--quiet", "--json", "--run", folder,
                   "--overwrite", "--", python, ROOT / "examples" / "transformers_trainer.py", model,
                   "--per_device_train_batch_size", "{micro}", "--gradient_accumulation_steps", "{accum}",
                   "--output_dir", "{scratch}", *more]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout)


def show(name, result):
    print(f"{name}: {result['verdict']}")
    for split in result["splits"]:
        factor = split["factor"]
        print(f"  {split['micro_batch']}x{split['accumulation_steps']}: factor "
              f"{'-' if factor is None else format(factor, '.4g')}  {split['kind'] or ''}  {split['why']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", help="not used: the example has its own rows")
    options = parser.parse_args()
    peer = side_environment.python_with("transformers-5.24.0", "transformers==5.24.0")
    faulty, right, mended = (verify(peer, options.model), verify(sys.executable, options.model),
                             verify(peer, options.model, "--divide_by_hand"))
    show("Transformers 5.24.0", faulty)
    show("Transformers of .venv", right)
    show("Transformers 5.24.0 with model_accepts_loss_kwargs = False", mended)
    cut = next(split for split in faulty["splits"] if split["micro_batch"] == 8)
    good = (cut["kind"] == "no_division" and abs(cut["factor"] - 4) < 0.05 and right["verdict"] == "same"
            and mended["verdict"] == "same")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
