"""docs/support.md: what the engine trains, written by the test that shows it (against_transformers.py --support FILE --write)."""

FAMILIES = {"bert": "BERT", "roberta": "RoBERTa, XLM-RoBERTa, CamemBERT", "distilbert": "DistilBERT", "gpt2": "GPT-2",
            "llama": "Llama 2, 3.x", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
TASKS = {"sequence-classification": "sequence classification", "token-classification": "token classification",
         "question-answering": "question answering", "causal-lm": "causal LM"}
METHODS = ("full", "lora")
# (family, task): why a cell is empty.
ENCODER = "no: an encoder"
RENAMED = "no: Transformers keeps the body under another name there"
ABSENT = {(family, "causal-lm"): ENCODER for family in ("bert", "roberta", "distilbert")} | {
    (family, "question-answering"): RENAMED for family in ("llama", "qwen2", "qwen3")}

HEAD = """# What trains

Written by `tests/engine/against_transformers.py ENGINE --support docs/support.md --write`: a cell says "yes" when in that run a small model
of the family with random weights gave the loss (to 1e-5), every gradient (to 1e-4), a loss curve and the logits of the saved
model that Transformers or PEFT give, and the same gradient at every split and layout.

"""


def cell(outcomes, family, task, method):
    found = [passed for case, passed in outcomes if (case.family, case.task, case.method) == (family, task, method)]
    if found:
        return "yes" if all(found) else "no"
    return ABSENT.get((family, task), "")


def table(outcomes):
    """Markdown from [(case, passed)]; a case has family, task and method."""
    columns = [(task, method) for task in TASKS for method in METHODS]
    lines = ["| family | " + " | ".join(f"{TASKS[task]}, {method}" for task, method in columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    for family, name in FAMILIES.items():
        cells = [cell(outcomes, family, task, method) for task, method in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return HEAD + "\n".join(lines) + "\n"


def holds(path, outcomes, write):
    """Whether the file says what this run found; written first when it should be."""
    if write:
        path.write_text(table(outcomes))
    found = path.read_text() if path.exists() else ""
    if found != table(outcomes):
        print(f"FAIL {path} says something else than this run; --write renews it")
    return found == table(outcomes)
