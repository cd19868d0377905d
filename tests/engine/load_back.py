"""A model that the engine saved loads in Transformers (full) or PEFT (LoRA) and gives the engine's own logits.

    load_back.py SAVED TOKENS DUMP [--base MODEL] [--tolerance 1e-4]

SAVED is the model folder of a training run; with adapter_config.json in it, --base names the model underneath. DUMP is
an engine's dump that started from SAVED: its logits are those of its first window.
"""
import argparse
import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from reference import AUTO  # noqa: E402
from token_file import TokenFile, run  # noqa: E402


def load(options, tokens):
    is_adapter = (options.saved / "adapter_config.json").exists()
    folder = options.base if is_adapter else options.saved
    if folder is None:
        sys.exit(f"{options.saved} is an adapter: name its model with --base")
    if not is_adapter:
        model, report = AUTO[tokens.task].from_pretrained(folder, output_loading_info=True)
        strange = {kind: names for kind, names in report.items() if names}
        if strange:
            sys.exit(f"the saved weights are not exactly the model's: {strange}")
        return model
    import peft
    labels = {"num_labels": len(tokens.label_names)} if tokens.label_names else {}
    model = AUTO[tokens.task].from_pretrained(folder, **labels)
    return peft.PeftModel.from_pretrained(model, options.saved)


def check_labels(saved, names):
    config = transformers.AutoConfig.from_pretrained(saved)
    found = [config.id2label[i] for i in range(config.num_labels)]
    if found != names:
        sys.exit(f"id2label is {found}, expected {names}")


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("saved", "tokens", "dump"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--base", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args(words)
    transformers.logging.set_verbosity_error()
    tokens = TokenFile(options.tokens)
    rows = json.loads((options.dump / "dump.json").read_text())["windows"][0]
    logits = load_file(options.dump / "logits.safetensors")["logits"]
    model = load(options, tokens).eval()
    if (options.saved / "config.json").exists():
        if tokens.label_names:
            check_labels(options.saved, tokens.label_names)
        transformers.AutoTokenizer.from_pretrained(options.saved)
    with torch.no_grad():
        batch = {name: value for name, value in tokens.padded(rows).items()
                 if name not in ("labels", "start_positions", "end_positions")}
        expected = tokens.wanted(rows, run(model, batch))
    worst = (logits - expected).abs().max().item()
    passed = worst <= options.tolerance
    print(f"{'ok  ' if passed else 'FAIL'} logits of {len(rows)} rows: {worst:.2e} (at most {options.tolerance:.0e})")
    return passed


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
