"""What Transformers and PEFT compute, for the engine to be compared with (compare.py).

    reference.py MODEL TOKENS OUT [--adapter FOLDER] [--windows dump.json] [--steps 50] ...

MODEL is a folder with the task's head, FOLDER a PEFT adapter (start.py makes both); TOKENS is a token file. The
examples of every step come from "windows" in the engine's dump (a list of row lists), else are taken in order. Every
dropout rate is 0 and each step is one forward over the whole effective batch; for question answering, where Transformers'
loss depends on the padding, it is the mean over the examples, each alone. Writes to OUT:
reference.json {"loss" of the first step, "losses", "gradient_norms", "learning_rates"}; gradients.safetensors, the
first step's gradients under Transformers' or PEFT's names; logits.safetensors, of the first window before training.
"""
import argparse
import json
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from token_file import TokenFile, run as forward  # noqa: E402


AUTO = {"sequence-classification": transformers.AutoModelForSequenceClassification,
        "token-classification": transformers.AutoModelForTokenClassification,
        "question-answering": transformers.AutoModelForQuestionAnswering,
        "causal-lm": transformers.AutoModelForCausalLM}
# What the families call their dropout rates.
DROPOUT_RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "dropout", "attention_dropout",
                 "seq_classif_dropout", "qa_dropout", "embd_pdrop", "attn_pdrop", "resid_pdrop")


def load_model(folder, adapter, task, dtype=torch.float32):
    config = transformers.AutoConfig.from_pretrained(folder)
    for name in DROPOUT_RATES:
        if hasattr(config, name) or name == "classifier_dropout":  # 0.1 where the configuration does not name it
            setattr(config, name, 0.0)
    model = AUTO[task].from_pretrained(folder, config=config, dtype=dtype)
    if adapter:
        import peft
        model = peft.PeftModel.from_pretrained(model, adapter, is_trainable=True)
    return model.train()


def file_name(parameter_name):
    """The name that save_pretrained gives a parameter: PEFT's adapter name does not stand in its files."""
    return parameter_name.replace(".modules_to_save.default", "").replace(".default.", ".")


def trainable(model):
    return {file_name(name): parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def make_optimizer(parameters, options):
    """AdamW as the Trainer sets it up: no decay for biases and layer norms."""
    decayed = [p for name, p in parameters.items() if not name.endswith("bias") and "LayerNorm" not in name]
    kept = [p for name, p in parameters.items() if name.endswith("bias") or "LayerNorm" in name]
    return torch.optim.AdamW([{"params": decayed, "weight_decay": options.weight_decay},
                              {"params": kept, "weight_decay": 0.0}], lr=options.learning_rate,
                             betas=(0.9, 0.999), eps=1e-8)


def backward(model, tokens, window):
    """Accumulates the gradients of the window's loss; returns the loss and the output of one forward over all of it."""
    output = forward(model, tokens.padded(window))
    if tokens.task != "question-answering":
        output.loss.backward()
        return output.loss.item(), output
    total = 0.0
    for row in window:
        alone = forward(model, tokens.padded([row])).loss / len(window)
        alone.backward()
        total += alone.item()
    return total, output


def windows_of(options, rows):
    if options.windows:
        return json.loads(options.windows.read_text())["windows"][:options.steps]
    size = options.effective_batch
    return [[(step * size + i) % rows for i in range(size)] for step in range(options.steps)]


def run(options):
    tokens = TokenFile(options.tokens)
    model = load_model(options.model, options.adapter, tokens.task)
    parameters = trainable(model)
    optimizer = make_optimizer(parameters, options)
    windows = windows_of(options, len(tokens))
    scheduler = transformers.get_scheduler(options.schedule, optimizer, options.warmup_steps, options.steps)
    record = {"losses": [], "gradient_norms": [], "learning_rates": []}
    for step, window in enumerate(windows):
        optimizer.zero_grad()
        loss, output = backward(model, tokens, window)
        if step == 0:
            save_file({"logits": tokens.wanted(window, output).detach().contiguous()}, options.out / "logits.safetensors")
            save_file({name: p.grad.contiguous().clone() for name, p in parameters.items()},
                      options.out / "gradients.safetensors")
        limit = options.clip if options.clip > 0 else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), limit)
        record["losses"].append(loss)
        record["gradient_norms"].append(norm.item())
        record["learning_rates"].append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    record["loss"] = record["losses"][0]
    record["versions"] = {"transformers": transformers.__version__, "torch": torch.__version__}
    (options.out / "reference.json").write_text(json.dumps(record))
    print(f"{len(windows)} steps, loss {record['loss']:.6f} to {record['losses'][-1]:.6f}")


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "tokens", "out"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--adapter", type=pathlib.Path)
    parser.add_argument("--windows", type=pathlib.Path)
    parser.add_argument("--effective-batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--warmup-steps", type=int, default=0)
    parser.add_argument("--schedule", choices=("linear", "cosine", "constant"), default="linear")
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args(words)


def main(words=None):
    options = parse_arguments(words)
    options.out.mkdir(parents=True, exist_ok=True)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    run(options)


if __name__ == "__main__":
    main()
