"""Token files for the benchmarks, through the project's own prepare step."""
import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "engine")]
from batchwright import examples, prepare  # noqa: E402
from token_file import TokenFile  # noqa: E402


def natural(data, model, max_length, folder):
    """The rows of a JSON lines file at their own lengths; cached by content."""
    lines = data.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    names = sorted({str(row["label"]) for row in rows})
    tokenizer = model / "tokenizer.json"
    digest = hashlib.sha256((data.read_text() + tokenizer.read_text() + str(max_length)).encode()).hexdigest()[:32]
    path = folder / f"{digest}.tokens"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        request = {"task": "sequence-classification", "pairs": False, "tokenizer": str(tokenizer),
                   "max_length": max_length, "label_names": names, "content_id": digest, "source_hash": digest,
                   "tokenizer_hash": digest}
        content = (json.dumps({"text": row["text"], "label": names.index(str(row["label"]))}) for row in rows)
        prepare.write_token_file(str(path), examples.tokenise(request, content)[0], request)
    return path


def uniform(source, length):
    """Rows of exactly `length` tokens, cut from the rows of `source` laid end to end."""
    path = source.with_suffix(f".uniform{length}.tokens")
    if not path.exists():
        tokens, rows = TokenFile(source), examples.LabelledRows("labels")
        ids = tokens.all_ids.tolist()
        count = min(len(tokens), len(ids) // length)
        for row in range(count):
            rows.add_tokens(ids[row * length:(row + 1) * length], [0] * length, row)
            rows.labels.append(int(tokens.labels[row]))
        digest = f"{tokens.header['content_id']}-{length}"
        prepare.write_token_file(str(path), rows, {
            "task": "sequence-classification", "max_length": length, "label_names": tokens.label_names, "content_id": digest,
            "source_hash": digest, "tokenizer_hash": digest})
    return path
