"""`batchwright.plan(...)`: the planner from Python, through the program itself.

    import batchwright
    answer = batchwright.plan(model="llama-3.1-8b", effective_batch=64, seq_len=512, gpu="A100", method="lora")

Keys are those of `batchwright plan --batch` (docs/plan.md, with underscores); the answer is its document. A list of
requests as the only positional argument answers a list. Raises PlanError with what the program says is wrong.
"""
import json
import os
import shutil
import subprocess


class PlanError(ValueError):
    """A request that the planner refuses: `kind`, `subject` and `hint` say why and what to do."""

    def __init__(self, error):
        super().__init__(f"{error['subject']}: {error['message']}" + (f". {error['hint']}" if error["hint"] else ""))
        self.kind, self.subject, self.hint = error["kind"], error["subject"], error["hint"]


def program():
    """The batchwright program: $BATCHWRIGHT, else the one on PATH."""
    found = os.environ.get("BATCHWRIGHT") or shutil.which("batchwright")
    if found is None:
        raise FileNotFoundError("batchwright is not on PATH; set BATCHWRIGHT to the program")
    return found


def plan(requests=None, /, **request):
    many = requests is not None
    lines = "".join(json.dumps(one) + "\n" for one in (requests if many else [request]))
    done = subprocess.run([program(), "plan", "--batch", "-"], input=lines, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if many:
        return answers
    if not answers:
        raise RuntimeError(done.stderr.strip() or "batchwright plan gave no answer")
    if "error" in answers[0]:
        raise PlanError(answers[0]["error"])
    return answers[0]
