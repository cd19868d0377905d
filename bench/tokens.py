"""Token files for the benchmarks, through the project's own prepare step."""
import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "engine")]
from batchwright import prepare  # noqa: E402
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
        request = {"max_length": max_length, "label_names": names, "content_id": digest, "source_hash": digest,
                   "tokenizer_hash": digest}
        loaded = prepare.load_tokenizer(str(tokenizer), max_length, pairs=False)
        content = (json.dumps({"text": row["text"], "label": names.index(str(row["label"]))}) for row in rows)
        sys.stdout, out = sys.stderr, sys.stdout  # prepare reports progress there
        try:
            prepare.write_token_file(str(path), prepare.tokenise(iter(content), loaded, pairs=False), request)
        finally:
            sys.stdout = out
    return path


def uniform(source, length):
    """Rows of exactly `length` tokens, cut from the rows of `source` laid end to end."""
    path = source.with_suffix(f".uniform{length}.tokens")
    if not path.exists():
        tokens, rows = TokenFile(source), prepare.Rows()
        ids = tokens.all_ids.tolist()
        count = min(len(tokens), len(ids) // length)
        for row in range(count):
            rows.ids.extend(ids[row * length:(row + 1) * length])
            rows.type_ids.extend([0] * length)
            rows.offsets.append(len(rows.ids))
            rows.labels.append(int(tokens.labels[row]))
        digest = f"{tokens.header['content_id']}-{length}"
        prepare.write_token_file(str(path), rows, {
            "max_length": length, "label_names": tokens.label_names, "content_id": digest, "source_hash": digest,
            "tokenizer_hash": digest})
    return path
