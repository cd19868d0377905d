"""Makes the folders from which the engine and Transformers both start, so that their first weights are the same bits.

    start.py OUT --base MODEL [--labels 2] [--lora RANK] [--targets query,value]    the model's weights plus a head
    start.py OUT --random [--family gpt2] [--layers 2 --hidden 32 --heads 4 ...]    a small model with random weights

OUT becomes a Hugging Face folder with the task's head; with --lora, OUT/adapter is a PEFT adapter whose
B is not zero (with PEFT's own zero B, the gradient of every A would be zero and prove nothing).
"""
import argparse
import json
import os
import pathlib
import shutil

os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
import transformers  # noqa: E402
from reference import AUTO  # noqa: E402

PEFT_TASKS = {"sequence-classification": "SEQ_CLS", "token-classification": "TOKEN_CLS", "question-answering": "QUESTION_ANS",
              "causal-lm": "CAUSAL_LM"}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
WORDS = "the a movie film was is not very good bad great dull plot of and but it i we never again".split()


def encoder_settings(options, **names):
    return {"vocab_size": options.vocab, "hidden_size": options.hidden, "num_hidden_layers": options.layers,
            "num_attention_heads": options.heads, "intermediate_size": options.intermediate or 4 * options.hidden,
            "max_position_embeddings": options.positions, "hidden_act": options.activation or "gelu",
            "layer_norm_eps": options.layer_norm_eps} | names


def decoder_settings(options):
    return {"vocab_size": options.vocab, "hidden_size": options.hidden, "num_hidden_layers": options.layers,
            "num_attention_heads": options.heads, "num_key_value_heads": options.kv_heads or options.heads // 2,
            "intermediate_size": options.intermediate or 2 * options.hidden, "rms_norm_eps": 1e-5,
            "max_position_embeddings": options.positions}


def settings_of(family, options):
    """The arguments of the family's configuration class for a small model."""
    if family == "bert":
        return encoder_settings(options)
    if family == "roberta":  # positions start behind the padding's
        return encoder_settings(options, type_vocab_size=1, max_position_embeddings=options.positions + 1)
    if family == "distilbert":
        return {"vocab_size": options.vocab, "dim": options.hidden, "n_layers": options.layers, "n_heads": options.heads,
                "hidden_dim": options.intermediate or 4 * options.hidden, "max_position_embeddings": options.positions}
    if family == "gpt2":
        return {"vocab_size": options.vocab, "n_embd": options.hidden, "n_layer": options.layers, "n_head": options.heads,
                "n_positions": options.positions}
    return decoder_settings(options)


def random_config(options):
    settings = settings_of(options.family, options) | {"num_labels": options.labels, "pad_token_id": 0}
    return transformers.AutoConfig.for_model(options.family, **settings | json.loads(options.settings))


def random_model(options):
    model = AUTO[options.task].from_config(random_config(options))
    # Transformers starts biases at 0 and norms at 1: random ones show a term that is left out.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def write_tokenizer(folder):
    """A WordPiece tokenizer over a handful of words and single letters, in BERT's form."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS
    pieces += [chr(c) for c in range(ord("a"), ord("z") + 1) if chr(c) not in WORDS]
    pieces += ["##" + chr(c) for c in range(ord("a"), ord("z") + 1)]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)


def based_model(options):
    labels = {"num_labels": options.labels} if options.task.endswith("classification") else {}
    model = AUTO[options.task].from_pretrained(options.base, **labels)
    # Transformers starts the head's bias at 0.
    for name in ("classifier", "qa_outputs"):
        if getattr(getattr(model, name, None), "bias", None) is not None:
            torch.nn.init.normal_(getattr(model, name).bias, std=0.02)
    return model


def saved_whole(model, options):
    """PEFT adds a task's head by itself, but, sequence classification apart, only after all-linear has wrapped it."""
    heads = [name for name, _ in model.named_children() if name in ("classifier", "score", "qa_outputs")]
    names = options.extra.split(",") if options.extra else []
    return names + (heads if options.task != "sequence-classification" else []) or None


def write_adapter(folder, model, options):
    import peft
    targets = options.targets if options.targets == "all-linear" else options.targets.split(",")
    adapted = peft.get_peft_model(model, peft.LoraConfig(
        r=options.lora, lora_alpha=options.alpha, lora_dropout=0.0, task_type=PEFT_TASKS[options.task],
        target_modules=targets, modules_to_save=saved_whole(model, options), use_rslora=options.rslora,
        fan_in_fan_out=model.config.model_type == "gpt2"))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.02)
    adapted.save_pretrained(folder)


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--base", type=pathlib.Path)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--task", choices=AUTO, default="sequence-classification")
    parser.add_argument("--labels", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lora", type=int, default=0, help="rank; 0: no adapter")
    parser.add_argument("--alpha", type=float, default=32)
    parser.add_argument("--targets", default="all-linear")
    parser.add_argument("--extra", default="", help="modules that train in full beside the adapters")
    parser.add_argument("--rslora", action="store_true")
    parser.add_argument("--family", default="bert", help="model_type of the random model")
    parser.add_argument("--settings", default="{}", help="JSON: more arguments of its configuration class")
    parser.add_argument("--shards", action="store_true", help="weights in several files with an index")
    for name, value in (("layers", 2), ("hidden", 32), ("heads", 4), ("intermediate", 0), ("vocab", 128),
                        ("positions", 128), ("kv-heads", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--activation", default="")
    parser.add_argument("--layer-norm-eps", type=float, default=1e-12)
    options = parser.parse_args(words)
    if bool(options.base) == options.random:
        parser.error("give --base MODEL or --random")
    return options


def main(words=None):
    options = parse_arguments(words)
    transformers.logging.set_verbosity_error()
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    model = random_model(options) if options.random else based_model(options)
    model.save_pretrained(options.out, max_shard_size="20KB" if options.shards else "5GB")
    if options.random:
        write_tokenizer(options.out)
    else:
        for name in TOKENIZER_FILES:
            if (options.base / name).exists():
                shutil.copy(options.base / name, options.out / name)
    if options.lora:
        write_adapter(options.out / "adapter", model, options)
    print(options.out)


if __name__ == "__main__":
    main()
