"""Makes the folders from which the engine and Transformers both start, so that their first weights are the same bits.

    start.py OUT --base MODEL [--labels 2] [--lora RANK] [--targets query,value]    the model's weights plus a head
    start.py OUT --random [--layers 2 --hidden 32 --heads 4 ...]                    a small BERT with random weights

OUT becomes a Hugging Face folder with a sequence classification head; with --lora, OUT/adapter is a PEFT adapter whose
B is not zero (with PEFT's own zero B, the gradient of every A would be zero and prove nothing).
"""
import argparse
import os
import pathlib
import shutil

os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
import transformers  # noqa: E402

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
WORDS = "the a movie film was is not very good bad great dull plot of and but it i we never again".split()


def random_model(options):
    config = transformers.BertConfig(
        vocab_size=options.vocab, hidden_size=options.hidden, num_hidden_layers=options.layers,
        num_attention_heads=options.heads, intermediate_size=options.intermediate or 4 * options.hidden,
        max_position_embeddings=options.positions, hidden_act=options.activation, layer_norm_eps=options.layer_norm_eps,
        num_labels=options.labels)
    model = transformers.BertForSequenceClassification(config)
    # Transformers starts biases at 0 and layer norms at 1: random ones show a term that is left out.
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
    model = transformers.AutoModelForSequenceClassification.from_pretrained(options.base, num_labels=options.labels)
    # Transformers starts the head's bias at 0.
    torch.nn.init.normal_(model.classifier.bias, std=0.02)
    return model


def write_adapter(folder, model, options):
    import peft
    targets = options.targets if options.targets == "all-linear" else options.targets.split(",")
    adapted = peft.get_peft_model(model, peft.LoraConfig(
        r=options.lora, lora_alpha=options.alpha, lora_dropout=0.0, task_type="SEQ_CLS", target_modules=targets,
        modules_to_save=["classifier"]))
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
    parser.add_argument("--labels", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lora", type=int, default=0, help="rank; 0: no adapter")
    parser.add_argument("--alpha", type=float, default=32)
    parser.add_argument("--targets", default="all-linear")
    for name, value in (("layers", 2), ("hidden", 32), ("heads", 4), ("intermediate", 0), ("vocab", 128),
                        ("positions", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--activation", default="gelu")
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
    model.save_pretrained(options.out)
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
