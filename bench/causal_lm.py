"""Causal language models beside the Transformers Trainer with PEFT: step time and memory at 4 x 512 tokens, LoRA, one run.

    scripts/bench causal_lm [--models gpt2,llama] [--steps 4] [--split 4x1] [--json FILE]

The models have random weights: gpt2 has GPT-2 small's shape (12 layers, hidden 768, vocabulary 50257, tied), llama four
layers of hidden 512 and a vocabulary of 32000. Rank 16 on every linear layer but the head, dropout as in the model's config,
the Trainer's defaults. Each comparison runs ours, peer, peer, ours; the interval is 95 % by bootstrap over the steps. Memory
is each process's highest resident size above that of the bare process.
"""
import argparse
import json
import os
import pathlib
import random
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import engine as engine_bench  # noqa: E402
import side_by_side as sbs  # noqa: E402
from batchwright import examples, prepare  # noqa: E402

LENGTH, ROWS, WANTED = 512, 80, 1.3


def config_of(name):
    import transformers
    if name == "gpt2":
        return transformers.GPT2Config()
    return transformers.LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                                    num_key_value_heads=8, vocab_size=32000, max_position_embeddings=2048)


def model_folder(name, folder):
    import torch
    import transformers
    path = folder / f"{name}-random"
    if not (path / "model.safetensors").exists():
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(config_of(name)).save_pretrained(path)
    return path


def token_file(vocabulary, folder):
    """Blocks of LENGTH random tokens, each with a label."""
    path = folder / f"blocks-{vocabulary}.tokens"
    if not path.exists():
        rng, rows = random.Random(0), examples.LabelledRows("token_labels")
        for row in range(ROWS):
            ids = [rng.randrange(vocabulary) for _ in range(LENGTH)]
            rows.add_tokens(ids, [0] * LENGTH, row)
            rows.labels.extend(ids)
        prepare.write_token_file(str(path), rows, {
            "task": "causal-lm", "max_length": LENGTH, "label_names": [], "content_id": path.stem, "source_hash": "random",
            "tokenizer_hash": "none"})
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="not used: the models are random")
    parser.add_argument("--data", help="not used: so are the tokens")
    parser.add_argument("--models", default="gpt2,llama")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--split", default="4x1")
    parser.add_argument("--json", type=pathlib.Path, help="also write every figure there")
    options = parser.parse_args()
    micro, accumulation = (int(part) for part in options.split.split("x"))
    sbs.EFFECTIVE_BATCH = micro * accumulation
    folder = sbs.ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for name in options.models.split(","):
        print(f"{name} ...", file=sys.stderr, flush=True)
        data = sbs.Data(model_folder(name, folder), token_file(config_of(name).vocab_size, folder))
        run = sbs.Run(options.split)
        result = engine_bench.row(name, sbs.compare(data, run, run, options.steps + sbs.WARM_UP_STEPS), WANTED, run, run)
        engine_bench.print_row(result)
        results.append(result)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
