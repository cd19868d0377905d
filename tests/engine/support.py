"""docs/support.md: what the engine trains, written by the test that shows it (against_transformers.py --support)."""

FAMILIES = {"bert": "BERT", "roberta": "RoBERTa, XLM-RoBERTa, CamemBERT", "distilbert": "DistilBERT", "gpt2": "GPT-2",
            "llama": "Llama 2, 3.x", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
TASKS = {"sequence-classification": "sequence classification"}
METHODS = ("full", "lora")
# (family, task): why a cell is empty.
ABSENT = {}

HEAD = """# What trains

Written by `tests/engine/against_transformers.py --support docs/support.md`: a cell says "yes" when in that run a small model
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
